"""Gaussian noise: of a trusted aggregator, of clients, and behind a shuffler."""

from dataclasses import dataclass

from raydp_sim.privacy.checks import check_rate, check_real, check_whole
from raydp_sim.privacy.events.unit import Protected


@dataclass(frozen=True)
class GaussianShuffle(Protected):
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
class SubsampledGaussianShuffle(Protected):
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
class GaussianRelease(Protected):
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
class GaussianReport(Protected):
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
class SubsampledGaussian(Protected):
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
class SubsampledGaussianRelease(Protected):
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
class SelfSampledGaussianRelease(Protected):
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
