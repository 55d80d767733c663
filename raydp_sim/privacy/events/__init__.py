"""What happened to the clients' data, as frozen records; what it costs is the accountant's work.

Each record says what the observer sees and who is charged. Unless said otherwise, neighbours
replace the data of one client and the number of clients is known. An event carries the unit that it
protects, all of a client's data or one item of it; guarantees of different units are never added.
"""

from raydp_sim.privacy.events.declared import (
    CentralRelease,
    EnsembleRelease,
    LocalReport,
    ShuffledRelease,
)
from raydp_sim.privacy.events.epochs import EpochRelease, SecretEpochRelease
from raydp_sim.privacy.events.gaussian import (
    GaussianRelease,
    GaussianReport,
    GaussianShuffle,
    SelfSampledGaussianRelease,
    SubsampledGaussian,
    SubsampledGaussianRelease,
    SubsampledGaussianShuffle,
)
from raydp_sim.privacy.events.laplace import LaplaceRelease, SubsampledLaplace
from raydp_sim.privacy.events.shuffles import (
    CldpRound,
    MultiMessageShuffle,
    SelfSampledShuffle,
    Shuffle,
    SubsampledMultiMessage,
    SubsampledShuffle,
)
from raydp_sim.privacy.events.unit import Unit

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

__all__ = [
    "Batch",
    "CentralRelease",
    "CldpRound",
    "EnsembleRelease",
    "EpochRelease",
    "Event",
    "GaussianRelease",
    "GaussianReport",
    "GaussianShuffle",
    "LaplaceRelease",
    "LocalReport",
    "MultiMessageShuffle",
    "Release",
    "SecretEpochRelease",
    "SelfSampledGaussianRelease",
    "SelfSampledShuffle",
    "Shuffle",
    "ShuffledRelease",
    "SubsampledGaussian",
    "SubsampledGaussianRelease",
    "SubsampledGaussianShuffle",
    "SubsampledLaplace",
    "SubsampledMultiMessage",
    "SubsampledShuffle",
    "Unit",
]
