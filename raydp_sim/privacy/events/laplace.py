"""Laplace noise of a trusted aggregator."""

from dataclasses import dataclass

from raydp_sim.privacy.checks import check_rate, check_real
from raydp_sim.privacy.events.unit import Protected


@dataclass(frozen=True)
class LaplaceRelease(Protected):
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
class SubsampledLaplace(Protected):
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
