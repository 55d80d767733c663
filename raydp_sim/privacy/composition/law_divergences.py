"""Renyi divergences of one shuffle of a known law: what budgets and unequal histories add up.

Loss distributions bound a sequence that is fixed beforehand; a Renyi filter (ledger/filter.py)
bounds one that is chosen as it goes, but needs the divergence of every release at orders above 1.
Here it is got from the profile H that law_rounds.py bounds from above.

Theorem. Let H(e) be at least the hockey-stick divergence at e >= 0 of two neighbours' views, in
both directions, and be the profile of masses m_j at losses l_j > 0: H(e) = sum m_j (1 - e^(e -
l_j))_+. Then for every real order a > 1, in both directions,

    e^((a-1) D_a) - 1 <= sum_j m_j (psi(l_j) + phi(l_j)),
    psi(l) = e^((a-1) l) - a + (a-1) e^-l,    phi(l) = e^(-a l) + (a-1) - a e^-l.

Proof. For a convex f that is twice differentiable and f(1) = f'(1) = 0, f(r) is the integral over
c > 1 of f''(c) (r - c)_+ dc, for r > 1, and over c < 1 of f''(c) (c - r)_+ dc, for r < 1. With r =
P/Q, averaged over Q, E (r - c)_+ = E_c(P|Q), the divergence at e = log c, and E (c - r)_+ = c
E_(1/c)(Q|P). For f(r) = r^a - 1 - a (r - 1), f'' = a (a - 1) c^(a-2), this is (Sason & Verdu 2016,
"f-divergence inequalities")

    e^((a-1) D_a(P|Q)) - 1 = a (a-1) integral over c > 1 of [c^(a-2) E_c(P|Q) + c^(-a-1) E_c(Q|P)].

All factors are positive, so E_c may be replaced by H(log c), and for one mass at l the two
integrals up to e^l are psi(l) and phi(l). No normalisation of the m_j is used, nor that some pair
has that profile. If P is not absolutely continuous H(e) does not vanish at large e; laws here have
a largest loss, at which it does. QED

Which masses. H is convex in c, so it is at most the chord between two knots, at which bounds are
known, and the chords are the profile of the masses of `losses.connect_side`. The last knot is the
largest loss that there is, where H is 0, so no tail is cut off and nothing counts as infinite: a
mass at infinity has no finite divergence. Where bounds on H stop falling, below 1e-300, the last
chord begins there: it is far too large for high orders, and still valid.

Rounding, for orders >= 2. psi and phi are differences. With x = (a-1) l, psi'' <= a (a-1) e^x and
phi' = a e^-l (1 - e^-x) <= a (a-1) l, so psi <= a (a-1) l^2/2 e^x and phi <= a (a-1) l^2/2: these
are taken where x < 1e-3. Beyond, e^-x psi is the difference of two numbers of at most min(x, 1),
and is at least 1 - (1 + x) e^-x, since psi'' >= (a-1)^2 e^x; phi is one of numbers of at most a
min(l, 1), and at least a min(l, 1) min(x, 1)/16. So a few units of 2^-53 in those numbers are less
than 1e-11 of psi and of phi; 1e-9 is added.
"""

import math

import numpy as np

from raydp_sim.privacy.composition.law_rounds import LawRound
from raydp_sim.privacy.composition.losses import Side, connect_side
from raydp_sim.privacy.curves.binomials import Floats

# Looks before the knots are chosen; the logarithm of the profile falls by so much between two
# knots, down to some level, and by more further on: there only high orders look, which are lost.
_LOOKS, _STEP, _FINE, _FURTHER = 48, 0.2, 36.0, 4.0
_SMALL = 1e-3
_UP = 1.0 + 1e-9


def losses_of(one: LawRound) -> Side:
    """Return masses at losses whose profile is at least that of the round, without a tail.

    Example:
        >>> from raydp_sim.privacy.laws import two_valued
        >>> losses_of(LawRound(two_valued(1.0, 0.5), 100)).infinite
        0.0
    """
    if one.most == 0.0:
        return Side(np.ones(1), np.zeros(1), 0.0)
    whole = float(one.profile(np.zeros(1))[0])
    rough = np.geomspace(min(0.02 * whole, 0.5 * one.most), one.most, _LOOKS)
    seen = np.minimum.accumulate(np.append(whole, one.profile(rough)))
    levels = np.log(np.maximum(seen, 1e-300 * max(whole, 1e-300)))
    # The last look is at a divergence of 0; what is below the others falls as steeply at least.
    steep = np.flatnonzero(np.diff(levels) < 0.0)
    keep = np.append(0, steep + 1)
    at, fall = np.append(0.0, rough)[keep], levels[0] - levels[keep]
    fine = np.arange(_STEP, _FINE, _STEP)
    wanted = np.append(fine, np.arange(_FINE, float(fall[-1]), _FURTHER))
    inner = np.interp(wanted[wanted < fall[-1]], fall, at)
    # Close to 0 the profile falls slowly, and in few steps.
    inner = np.unique(np.concatenate([inner, rough[:8]]))
    inner = inner[(inner > 0.0) & (inner < (1.0 - 1e-9) * one.most)]
    knots = np.append(inner[np.diff(inner, prepend=0.0) > 1e-9 * inner], one.most)
    values = np.minimum.accumulate(one.profile(np.append(0.0, knots)))
    values[-1] = 0.0
    return connect_side(knots, values)


def log_moments(side: Side, orders: Floats) -> Floats:
    """Return the logarithm of an upper bound on e^((a-1) D_a) - 1 at each order a > 1.

    Example:
        >>> from raydp_sim.privacy.composition.losses import connect_side
        >>> response = connect_side(np.array([1.0]), np.array([math.tanh(0.5), 0.0]))
        >>> found = math.log1p(math.exp(log_moments(response, np.array([2.0]))[0]))
        >>> round(found, 6)  # of randomized response with epsilon0 1
        0.735326
    """
    seen = side.mass > 0.0
    losses, mass = side.losses[seen], side.mass[seen]
    a = orders[:, None]
    x = (a - 1.0) * losses
    small = 0.5 * a * (a - 1.0) * losses * losses
    # e^x (1 - a e^-x + (a-1) e^(-l-x)), so that nothing overflows; at small x the bound instead.
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = -np.expm1(-x) + (a - 1.0) * np.exp(-x) * np.expm1(-losses)
        psi = np.where(x < _SMALL, np.log(small), np.log(np.maximum(inside, 1e-300)))
        other = np.expm1(-a * losses) - a * np.expm1(-losses)
        phi = np.where(x < _SMALL, small, other)
        terms = np.logaddexp(psi + x, np.log(np.maximum(phi, 1e-300))) + np.log(mass)
    top = terms.max(axis=1, keepdims=True)
    total = np.log(np.exp(terms - top).sum(axis=1)) + top[:, 0]
    return np.asarray(total + math.log(_UP) + 1e-14 * (np.abs(total) + orders * losses[-1]))


def renyi(side: Side, orders: Floats) -> Floats:
    """Return upper bounds on the Renyi divergences at orders >= 2 of what has this profile.

    Example:
        >>> from raydp_sim.privacy.laws import two_valued
        >>> alone = losses_of(LawRound(two_valued(1.0, 0.5), 1))
        >>> round(float(renyi(alone, np.array([2.0]))[0]), 4)
        0.7353
    """
    if len(orders) == 0 or not np.any(side.mass > 0.0):
        return np.zeros(len(orders))
    logs = log_moments(side, orders)
    return np.asarray(np.logaddexp(0.0, logs) / (orders - 1.0) * (1.0 + 1e-12))
