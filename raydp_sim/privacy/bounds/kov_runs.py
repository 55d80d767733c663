"""Whole runs by composing one shuffle's epsilon, after sampling, over the rounds: a table.

Half of delta goes to the composition (Kairouz, Oh & Viswanath 2015, Theorem 3.5). Where a bound on
one shuffle is silent, a round is (epsilon0, 0), and the note says so.

Example:
    >>> from raydp_sim.privacy.bound import find_run
    >>> from raydp_sim.privacy.events import SubsampledShuffle
    >>> def epsilon(name, epsilon0):
    ...     event = SubsampledShuffle(epsilon0, 10**6, 1000)
    ...     return round(find_run(name).epsilon([(event, 10**5)], 1e-8).epsilon, 3)
    >>> epsilon("balle+kov", 1.0), epsilon("fmt_closed+kov", 2.0), epsilon("fmt_numeric+kov", 2.0)
    (0.711, 14.48, 2.53)
"""

from raydp_sim.privacy.bounds.closed_forms import balle, fmt_closed
from raydp_sim.privacy.composition.runs import amplified
from raydp_sim.privacy.curves.clones import clones_epsilon

_KOV = "Kairouz, Oh & Viswanath 2015, Theorem 3.5"

RUNS = (
    amplified("balle+kov", balle, f"Balle et al. 2019; {_KOV}"),
    amplified("fmt_closed+kov", fmt_closed, f"Feldman et al. 2021, Theorem 3.1; {_KOV}"),
    amplified("fmt_numeric+kov", clones_epsilon, f"Feldman et al. 2021, dominating pair; {_KOV}"),
)
