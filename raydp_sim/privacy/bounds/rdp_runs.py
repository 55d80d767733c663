"""Whole runs by adding one bound's divergences and converting at the best whole order: a table.

Example:
    >>> from raydp_sim.privacy.bound import find_run
    >>> shuffle, sampled = Shuffle(0.5, 10**6), SubsampledShuffle(2.0, 10**6, 1000)
    >>> def epsilon(name, event):
    ...     return round(find_run(name).epsilon([(event, 10**5)], 1e-8).epsilon, 4)
    >>> epsilon("rdp-upper1", shuffle), epsilon("rdp-numeric", shuffle)
    (1.6398, 1.1116)
    >>> epsilon("rdp-lower", shuffle)
    0.8549
    >>> epsilon("rdp-subsampled", sampled), epsilon("rdp-wbk", sampled)
    (1.0402, 1.0237)
    >>> epsilon("rdp-wbk-naive", sampled), epsilon("rdp-wbk-clones", sampled)
    (2.6558, 0.5336)
    >>> epsilon("rdp-poisson-zw", SubsampledShuffle(3.0, 10**6, 1000))
    2.7396
    >>> epsilon("rdp-mixture", SelfSampledShuffle(2.0, 10**6, 0.001))
    1.0394
    >>> epsilon("rdp-cldp", CldpRound(2.0, 10**6, 1, 1000, 1))
    1.0402
    >>> epsilon("rdp-wbk-multi", SubsampledMultiMessage((1.0, 1.0), 10**6, 1000))
    0.3995
    >>> round(find_run("rdp-clones").epsilon([(shuffle, 10**5)], 1e-8).epsilon, 3)
    1.076
"""

from raydp_sim.privacy.bounds.cldp import Cldp
from raydp_sim.privacy.bounds.clones import Clones
from raydp_sim.privacy.bounds.lower import Lower
from raydp_sim.privacy.bounds.numeric import Numeric
from raydp_sim.privacy.bounds.poisson_mixture import PoissonMixture
from raydp_sim.privacy.bounds.poisson_zw import PoissonZw
from raydp_sim.privacy.bounds.secret_order import SecretOrder
from raydp_sim.privacy.bounds.upper import Upper
from raydp_sim.privacy.bounds.upper1 import Upper1
from raydp_sim.privacy.bounds.wbk import Wbk, WbkNaive
from raydp_sim.privacy.bounds.wbk_clones import WbkClones
from raydp_sim.privacy.bounds.wbk_multi import WbkMulti
from raydp_sim.privacy.composition.runs import added
from raydp_sim.privacy.events import (
    CldpRound,
    SecretEpochRelease,
    SelfSampledShuffle,
    Shuffle,
    SubsampledMultiMessage,
    SubsampledShuffle,
)

RUNS = (
    added("rdp-cldp", Cldp(), (CldpRound,)),
    added("rdp-clones", Clones(), (Shuffle,), quick=True),
    # Only the divergences themselves are bounded from below: the conversion itself loses. Orders up
    # to 17370 play a part.
    added(
        "rdp-lower",
        Lower(),
        Lower.events,
        status="heuristic",
        alpha_max=20_000,
        note="a lower curve converted: a floor for bounds by divergences, not for epsilon",
    ),
    added("rdp-mixture", PoissonMixture(), (SelfSampledShuffle,)),
    added("rdp-numeric", Numeric(), (Shuffle,), quick=True),
    added("rdp-poisson-zw", PoissonZw(), (SubsampledShuffle,), status="heuristic"),
    added("rdp-secret-order", SecretOrder(), (SecretEpochRelease,)),
    added("rdp-subsampled", Upper(), (SubsampledShuffle,)),
    added("rdp-upper1", Upper1(), (Shuffle,)),
    added("rdp-wbk", Wbk(), (SubsampledShuffle,)),
    added("rdp-wbk-clones", WbkClones(), (SubsampledShuffle,)),
    added("rdp-wbk-multi", WbkMulti(), (SubsampledMultiMessage,)),
    added("rdp-wbk-naive", WbkNaive(), (SubsampledShuffle,)),
)
