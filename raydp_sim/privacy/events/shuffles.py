"""Messages of locally private randomizers that a shuffler mixed."""

from dataclasses import dataclass, field

from raydp_sim.privacy.checks import (
    check_alphabet,
    check_losses,
    check_rate,
    check_real,
    check_whole,
)
from raydp_sim.privacy.events.unit import Protected, Unit


@dataclass(frozen=True)
class Shuffle(Protected):
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
class SubsampledShuffle(Protected):
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
class SelfSampledShuffle(Protected):
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
class MultiMessageShuffle(Protected):
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
class SubsampledMultiMessage(Protected):
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
class CldpRound(Protected):
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
