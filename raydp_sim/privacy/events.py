"""What happened to the clients' data, as frozen records; what it costs is the accountant's work.

Each record says what the observer sees and who is charged. Unless said otherwise, neighbours
replace the data of one client and the number of clients is known. An event carries the unit that it
protects, all of a client's data or one item of it; guarantees of different units are never added.
"""

from dataclasses import dataclass, field
from typing import Literal

from raydp_sim.privacy.checks import (
    check_alphabet,
    check_losses,
    check_rate,
    check_real,
    check_whole,
)

Unit = Literal["client", "item"]


@dataclass(frozen=True)
class _Protected:
    """What every event says: which unit neighbours differ in."""

    unit: Unit = field(default="client", kw_only=True, repr=False)


@dataclass(frozen=True)
class LocalReport(_Protected):
    """Each charged client sent one report of an (epsilon, delta)-LDP randomizer.

    The view is the report itself, so the guarantee holds against everyone, the server included.
    """

    epsilon: float
    delta: float = 0.0


@dataclass(frozen=True)
class CentralRelease(_Protected):
    """A trusted aggregator released one (epsilon, delta)-DP function of the charged clients' data.

    Neighbours replace one client's data; the view is the released estimate.
    """

    epsilon: float
    delta: float = 0.0


@dataclass(frozen=True)
class EnsembleRelease(_Protected):
    """A trusted aggregator released one (epsilon, delta)-DP function of votes on private data.

    Each voter's vote is itself differentially private for the data behind it. Neighbours differ in
    one RECORD of those data, not in one vote: where records are shared it may change every vote.
    Whether it is replaced, or added or removed, is what the guarantee of the votes says.
    The view is the released label, never the tally. Only (epsilon, delta) is known of it.

    Attributes:
        epsilon, delta: of the release, >= 0.
        records: `shared`, every voter may have used the record; `disjoint`, one of them.
        votes: `fresh`, drawn anew for this query, independently of the other queries; `fixed`, all
            queries are answered by what each voter computed once, which is charged at the first.

    Example:
        >>> EnsembleRelease(0.3, 1e-5).unit
        'item'
    """

    epsilon: float
    delta: float = 0.0
    records: Literal["shared", "disjoint"] = "shared"
    votes: Literal["fresh", "fixed"] = "fresh"
    unit: Unit = field(default="item", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        check_real(self, "epsilon")
        check_real(self, "delta")


@dataclass(frozen=True)
class ShuffledRelease(_Protected):
    """A shuffler released all messages of a batch, which together are (epsilon, delta)-DP.

    A report alone is not protected: the view is the multiset of all messages of the batch, and the
    guarantee counts on `n` of its clients, the charged one included, to follow the protocol.
    Neighbours replace one client's data. Charged: those who took part.

    Attributes:
        epsilon, delta: of the release, >= 0.
        n: honest clients that it takes, >= 1.

    Example:
        >>> ShuffledRelease(1.0, 1e-8, n=500).n
        500
    """

    epsilon: float
    delta: float
    n: int

    def __post_init__(self) -> None:
        check_real(self, "epsilon")
        check_real(self, "delta")
        check_whole(self, "n")


@dataclass(frozen=True)
class Shuffle(_Protected):
    """The messages of n clients, one each of an epsilon0-LDP randomizer, were shuffled.

    The analyst sees the multiset of messages, and who took part. Charged: the n participants. It
    rests on the shuffler, and on the other n - 1 messages being made honestly.

    Attributes:
        epsilon0: local loss of one message, >= 0; the largest, where clients differ.
        n: messages, >= 1.
        randomizer: its name, for bounds that know the mechanism; None: any epsilon0-LDP one.
        alphabet: number of symbols of that randomizer, where it matters.

    Example:
        >>> Shuffle(2.0, 1000).n
        1000
    """

    epsilon0: float
    n: int
    randomizer: str | None = None
    alphabet: int | None = None

    def __post_init__(self) -> None:
        check_real(self, "epsilon0")
        check_whole(self, "n")
        check_alphabet(self)


@dataclass(frozen=True)
class SubsampledShuffle(_Protected):
    """Of `clients`, `sampled` were chosen uniformly without replacement; their messages shuffled.

    The analyst sees the multiset of messages but not who was chosen. Charged: everyone who could
    have been chosen. Who was chosen must stay secret, else it is a `Shuffle` of the chosen.

    Attributes:
        epsilon0: local loss of one message, >= 0.
        clients: n >= 1, eligible.
        sampled: k in [1, n].
        randomizer, alphabet: as for `Shuffle`.

    Example:
        >>> SubsampledShuffle(2.0, clients=10**6, sampled=1000).rate
        0.001
    """

    epsilon0: float
    clients: int
    sampled: int
    randomizer: str | None = None
    alphabet: int | None = None

    def __post_init__(self) -> None:
        check_real(self, "epsilon0")
        check_whole(self, "clients")
        check_whole(self, "sampled", most=self.clients)
        check_alphabet(self)

    @property
    def rate(self) -> float:
        """The sampling rate k/n."""
        return self.sampled / self.clients


@dataclass(frozen=True)
class SelfSampledShuffle(_Protected):
    """Each of `clients` joined by its own secret coin; the messages of those who did were shuffled.

    The analyst sees the multiset of messages and so their number. Charged: everyone eligible.

    Attributes:
        epsilon0: local loss of one message, >= 0.
        clients: n >= 1, eligible.
        probability: of joining, in (0, 1].
        randomizer, alphabet: as for `Shuffle`.

    Example:
        >>> SelfSampledShuffle(1.0, clients=60_000, probability=0.1).probability
        0.1
    """

    epsilon0: float
    clients: int
    probability: float
    randomizer: str | None = None
    alphabet: int | None = None

    def __post_init__(self) -> None:
        check_real(self, "epsilon0")
        check_whole(self, "clients")
        check_rate(self, "probability")
        check_alphabet(self)


@dataclass(frozen=True)
class MultiMessageShuffle(_Protected):
    """Each of n clients sent one message to each of several independent shufflers.

    A client's messages are independent given its data; correlated ones, such as shares of a secret,
    are another event: a `Shuffle` of whole reports, or a `ShuffledRelease`. The analyst sees one
    multiset per message index and cannot link them. Charged: the n participants. It is the
    composition of one `Shuffle` per message.

    Attributes:
        losses: local loss of each of a client's messages, each >= 0.
        n: clients, >= 1.
        randomizer: of every message, as for `Shuffle`.

    Example:
        >>> len(MultiMessageShuffle((0.5, 0.25), n=100).losses)
        2
    """

    losses: tuple[float, ...]
    n: int
    randomizer: str | None = None

    def __post_init__(self) -> None:
        check_losses(self)
        check_whole(self, "n")


@dataclass(frozen=True)
class SubsampledMultiMessage(_Protected):
    """Of `clients`, `sampled` were chosen uniformly; each sent one message to each shuffler.

    Without replacement, and the same clients for all shufflers, so the messages are not sampled
    independently of each other; given a client's data they are independent, as for
    `MultiMessageShuffle`. The analyst sees one multiset per message index, cannot link them
    and does not see who was chosen. Charged: everyone who could have been chosen. There is no such
    record for clients that join by their own coins: nothing is proved for it here.

    Attributes:
        losses: local loss of each of a client's messages, each >= 0.
        clients: n >= 1, eligible.
        sampled: k in [1, n].
        randomizer: of every message, as for `Shuffle`.

    Example:
        >>> SubsampledMultiMessage((0.5, 0.25), clients=1000, sampled=10).rate
        0.01
    """

    losses: tuple[float, ...]
    clients: int
    sampled: int
    randomizer: str | None = None

    def __post_init__(self) -> None:
        check_losses(self)
        check_whole(self, "clients")
        check_whole(self, "sampled", most=self.clients)

    @property
    def rate(self) -> float:
        """The sampling rate k/n."""
        return self.sampled / self.clients


@dataclass(frozen=True)
class GaussianShuffle(_Protected):
    """The reports of n clients, vectors of an l2 ball each with Gaussian noise, were shuffled.

    As `Shuffle`, for a randomizer that has no pure local guarantee. Charged: the n participants.

    Attributes:
        noise_multiplier: of every report, its standard deviation over the ball's diameter.
        n: reports, >= 1.
        dimension: of the vectors, >= 1.

    Example:
        >>> GaussianShuffle(3.7, 1000).dimension
        1
    """

    noise_multiplier: float
    n: int
    dimension: int = 1

    def __post_init__(self) -> None:
        check_real(self, "noise_multiplier", above=0.0)
        check_whole(self, "n")
        check_whole(self, "dimension")


@dataclass(frozen=True)
class SubsampledGaussianShuffle(_Protected):
    """As `GaussianShuffle`, of `sampled` of `clients`, chosen as for `SubsampledShuffle`.

    Uniformly, without replacement and in secret; neighbours replace one client's data, unlike those
    of `SubsampledGaussian`. Charged: everyone who could have been chosen.

    Attributes:
        noise_multiplier: as for `GaussianShuffle`.
        clients: n >= 1, eligible.
        sampled: k in [1, n].
        dimension: as for `GaussianShuffle`.

    Example:
        >>> SubsampledGaussianShuffle(3.7, clients=10_000, sampled=100).rate
        0.01
    """

    noise_multiplier: float
    clients: int
    sampled: int
    dimension: int = 1

    def __post_init__(self) -> None:
        check_real(self, "noise_multiplier", above=0.0)
        check_whole(self, "clients")
        check_whole(self, "sampled", most=self.clients)
        check_whole(self, "dimension")

    @property
    def rate(self) -> float:
        """The sampling rate k/n."""
        return self.sampled / self.clients


@dataclass(frozen=True)
class CldpRound(_Protected):
    """Some clients were sampled, each sampled some of its points, and the messages were shuffled.

    `sampled_clients` of `clients` uniformly, then `sampled_points` of the `points` of each, one
    epsilon0-LDP message per point. Neighbours replace one POINT of one client. The analyst sees the
    multiset of messages, not who or what was sampled. Charged: everyone eligible.

    Attributes:
        epsilon0: local loss of one message, >= 0.
        clients: n >= 1, eligible.
        points: of each client; of the one that has fewest, where one is sampled of each.
        sampled_clients: k in [1, n].
        sampled_points: of each sampled client, in [1, points].
        randomizer, alphabet: as for `Shuffle`.

    Example:
        >>> CldpRound(1.0, 3, 2, sampled_clients=2, sampled_points=1).rate
        0.3333333333333333
    """

    epsilon0: float
    clients: int
    points: int
    sampled_clients: int
    sampled_points: int
    randomizer: str | None = None
    alphabet: int | None = None
    unit: Unit = field(default="item", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        check_real(self, "epsilon0")
        check_whole(self, "clients")
        check_whole(self, "points")
        check_whole(self, "sampled_clients", most=self.clients)
        check_whole(self, "sampled_points", most=self.points)
        check_alphabet(self)

    @property
    def rate(self) -> float:
        """The probability that a given point is used."""
        return self.sampled_clients * self.sampled_points / (self.clients * self.points)


@dataclass(frozen=True)
class GaussianRelease(_Protected):
    """A trusted aggregator released a function of the data with Gaussian noise.

    `noise_multiplier` is the standard deviation over the l2 sensitivity, for whichever neighbours
    that sensitivity is meant. The view is the released value. Charged: everyone whose data it used.

    Example:
        >>> GaussianRelease(1.0).noise_multiplier
        1.0
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        check_real(self, "noise_multiplier", above=0.0)


@dataclass(frozen=True)
class GaussianReport(_Protected):
    """Each charged client sent one report, made of Gaussian releases of its own data.

    The view is the report itself, so the guarantee holds against everyone, the server included. A
    report may be made of several releases, each of which may depend on those before it: together
    they cost what one costs whose `noise_multiplier` z has 1/z^2 = sum 1/z_i^2 (Dong, Roth & Su
    2022, Corollary 3.3). Neighbours replace the client's data. Charged: those who took part.

    Example:
        >>> GaussianReport(1.0).noise_multiplier
        1.0
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        check_real(self, "noise_multiplier", above=0.0)


@dataclass(frozen=True)
class SubsampledGaussian(_Protected):
    """As `GaussianRelease`, of a Poisson sample: each record is used with probability `rate`.

    Neighbours ADD OR REMOVE one record, unlike nearly everywhere here; so do those of
    `SubsampledLaplace`. Charged: everyone eligible.

    Example:
        >>> SubsampledGaussian(1.0, rate=0.01).rate
        0.01
    """

    noise_multiplier: float
    rate: float

    def __post_init__(self) -> None:
        check_real(self, "noise_multiplier", above=0.0)
        check_rate(self, "rate")


@dataclass(frozen=True)
class SubsampledGaussianRelease(_Protected):
    """As `GaussianRelease`, of a secret uniform sample of clients, and of points of each of them.

    `sampled` of `clients` without replacement, then `sampled_points` of the `points` of each.
    Neighbours REPLACE one client's data, or one point if the unit is an item, unlike those of
    `SubsampledGaussian`; so does the sensitivity that the noise is stated in. The view is the
    released value and how many were sampled, not who. Charged: everyone eligible.

    Attributes:
        noise_multiplier: as for `GaussianRelease`.
        clients: n >= 1, eligible.
        sampled: k in [1, n].
        points: of each client; of the one that has fewest, where one is sampled of each.
        sampled_points: of each sampled client, in [1, points].

    Example:
        >>> SubsampledGaussianRelease(1.0, clients=1000, sampled=100, points=5).rate
        0.02
    """

    noise_multiplier: float
    clients: int
    sampled: int
    points: int = 1
    sampled_points: int = 1

    def __post_init__(self) -> None:
        check_real(self, "noise_multiplier", above=0.0)
        check_whole(self, "clients")
        check_whole(self, "sampled", most=self.clients)
        check_whole(self, "points")
        check_whole(self, "sampled_points", most=self.points)

    @property
    def rate(self) -> float:
        """The probability that a given client, or point, is used."""
        return self.sampled * self.sampled_points / (self.clients * self.points)


@dataclass(frozen=True)
class SelfSampledGaussianRelease(_Protected):
    """As `SubsampledGaussianRelease`, where each client joins by its own secret coin.

    How many did is seen, whether or not their data are used; so neighbours can only replace data,
    and rounds in which too few came to release anything happened too.

    Attributes:
        noise_multiplier: as for `GaussianRelease`.
        clients: n >= 1, eligible.
        probability: of joining, in (0, 1].
        points, sampled_points: as for `SubsampledGaussianRelease`.

    Example:
        >>> SelfSampledGaussianRelease(1.0, clients=1000, probability=0.1).rate
        0.1
    """

    noise_multiplier: float
    clients: int
    probability: float
    points: int = 1
    sampled_points: int = 1

    def __post_init__(self) -> None:
        check_real(self, "noise_multiplier", above=0.0)
        check_whole(self, "clients")
        check_rate(self, "probability")
        check_whole(self, "points")
        check_whole(self, "sampled_points", most=self.points)

    @property
    def rate(self) -> float:
        """The probability that a given client, or point, is used."""
        return self.probability * self.sampled_points / self.points


@dataclass(frozen=True)
class LaplaceRelease(_Protected):
    """A trusted aggregator released a number with Laplace noise of scale sensitivity/epsilon.

    The view is the released number. Charged: everyone whose data it used.

    Example:
        >>> LaplaceRelease(0.5).epsilon
        0.5
    """

    epsilon: float

    def __post_init__(self) -> None:
        check_real(self, "epsilon")


@dataclass(frozen=True)
class SubsampledLaplace(_Protected):
    """As `LaplaceRelease`, of a Poisson sample: each record is used with probability `rate`.

    Neighbours ADD OR REMOVE one record, as for `SubsampledGaussian`. Charged: everyone eligible.

    Example:
        >>> SubsampledLaplace(0.5, rate=0.01).rate
        0.01
    """

    epsilon: float
    rate: float

    def __post_init__(self) -> None:
        check_real(self, "epsilon")
        check_rate(self, "rate")


@dataclass(frozen=True)
class EpochRelease(_Protected):
    """A trusted learner took an epoch of noisy steps, one record each, and may show where it ended.

    Steps must be non-expansive but for their noise, which all of them have. The first `private` go
    along private records, each used once, in an order that anybody may know. Neighbours replace one
    record. The view is the iterate at the end of the epoch, or less; those inside it are not seen.
    Charged: everyone whose record was held.

    Attributes:
        noise_multiplier: of a step, noise over how far one record moves it (sigma/(2 G)).
        steps: n >= 1.
        private: n_d in [0, n].

    Example:
        >>> EpochRelease(1.5, steps=1000, private=500).tail
        501
    """

    noise_multiplier: float
    steps: int
    private: int
    unit: Unit = field(default="item", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        check_real(self, "noise_multiplier", above=0.0)
        check_whole(self, "steps")
        check_whole(self, "private", most=self.steps, least=0)

    @property
    def tail(self) -> int:
        """Noisy steps from the last private record on, its own included."""
        return self.steps + 1 - self.private


@dataclass(frozen=True)
class SecretEpochRelease(_Protected):
    """As `EpochRelease`, in an order that is uniform and unknown to whoever sees the iterates.

    Where several epochs share one order, each of them is charged an even part of all: together they
    cost no more, and fewer of them less.

    Attributes:
        noise_multiplier, steps, private: as for `EpochRelease`.
        epochs: that share the order: 1 where each has its own.

    Example:
        >>> SecretEpochRelease(1.5, steps=1000, private=500).epochs
        1
    """

    noise_multiplier: float
    steps: int
    private: int
    epochs: int = 1
    unit: Unit = field(default="item", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        check_real(self, "noise_multiplier", above=0.0)
        check_whole(self, "steps")
        check_whole(self, "private", most=self.steps, least=0)
        check_whole(self, "epochs")


Batch = Shuffle | MultiMessageShuffle | GaussianShuffle
"""Shuffles of n clients who are charged; they cost less the larger n is."""

Event = LocalReport | CentralRelease | ShuffledRelease | EnsembleRelease
"""What mechanisms declare and the run's ledger stores."""

Release = (
    Shuffle
    | SubsampledShuffle
    | SelfSampledShuffle
    | MultiMessageShuffle
    | SubsampledMultiMessage
    | GaussianShuffle
    | SubsampledGaussianShuffle
    | CldpRound
    | GaussianRelease
    | GaussianReport
    | SubsampledGaussian
    | SubsampledGaussianRelease
    | SelfSampledGaussianRelease
    | LaplaceRelease
    | SubsampledLaplace
    | EpochRelease
    | SecretEpochRelease
    | LocalReport
    | CentralRelease
    | EnsembleRelease
)
"""What the accountant composes."""
