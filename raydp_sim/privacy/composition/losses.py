"""The law of a privacy loss on finitely many knots, never below the profile it was made from.

A pair (P, Q) is known by its profile H(epsilon) = sup_A P(A) - e^epsilon Q(A), epsilon real. A
positive measure nu on (-inf, inf] has the profile H_nu(epsilon) = integral of (1 - e^(epsilon -
l))_+ nu(dl); for the law of the loss under P it is the pair's. With H' the profile of the exchanged
pair (Q, P), H(-e) = 1 - e^-e + e^-e H'(e), so both profiles at e >= 0 are enough. Most pairs here
are symmetric (exchanging P and Q changes nothing), H' = H; the others keep both.

Domination. If H_nu <= H_nu' at every real epsilon then H_(nu * mu) <= H_(nu' * mu) for every
positive measure mu, because H_(nu * mu)(e) is the integral of H_nu(e - l) over mu(dl). Nothing has
to be normalised: a measure that is too heavy only errs upwards. So each step of a composition may
replace a law by one with a larger profile, and `connect` is the one place where that is done.

Connecting the dots (Doroshenko, Ghazi, Kamath, Kumar & Manurangsi 2022, "Connect the dots: tighter
discrete approximations of privacy loss distributions"). Let values v_j >= H(l_j) be given at knots
0 = l_0 < ... < l_J. H is convex in c = e^epsilon, so it is at most the chord between two knots, and
at most v_J beyond the last. The measure with these chords as its profile has at l_j the mass p_j -
p_(j+1) e^-(l_(j+1) - l_j), where p_j = (v_(j-1) - v_j)/(1 - e^-(l_j - l_(j-1))), and v_J at
infinity. Where rounding breaks convexity a mass would be negative; then p_j is raised until it is
0, which raises the profile. Below 0 the measure is the mirror image, e^-l_j times the mass of l_j
at -l_j, and at 0 stands what makes the total at least 1: then, with finite part F, the profile at
-e is (F + v_J)(1 - e^-e) + e^-e H_nu(e), which is at least H(-e). No mass is cut away anywhere.

Pairs that are not symmetric (`join`). Masses p at l > 0 and v at infinity belong to H; masses q at
m > 0 and v' at infinity belong to H', and e^-m q stands at -m. With what stands at 0 the whole is
t under P and t' = t - f + b under Q, where f = sum p (1 - e^-l) + v and b = sum q (1 - e^-m) + v'
are the two profiles at 0. The profile at -e is t - e^-e t' + e^-e H_nu'(e), so it is at least
1 - e^-e + e^-e H'(e) if t >= 1 and t >= t', that is f >= b: where rounding left f below b, p and v
are scaled up by their quotient.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from raydp_sim.privacy.curves.binomials import Floats

Profile = Callable[[Floats], Floats]
"""Upper bounds on H at the given losses >= 0, as one array."""

# Twice what a few roundings of one value amount to; added upwards.
_ULPS = 2.0**-48


@dataclass(frozen=True)
class Side:
    """Losses > 0 of one direction, with their masses, and what counts as an infinite loss."""

    losses: Floats
    mass: Floats
    infinite: float

    @cached_property
    def _above(self) -> tuple[Floats, Floats]:
        """Profile at the knots 0, l_1, ...; and e^l_j times the mass under Q of losses >= l_j."""
        losses, mass = self.losses.tolist(), self.mass.tolist()
        values, weights = [self.infinite], []
        weight, after = 0.0, losses[-1]
        for loss, here, before in zip(
            reversed(losses), reversed(mass), [*reversed(losses[:-1]), 0.0], strict=True
        ):
            weight = here + weight * math.exp(loss - after)
            weights.append(weight)
            values.append(values[-1] - weight * math.expm1(before - loss))
            after = loss
        return np.array(values[::-1]), np.array(weights[::-1])

    def profile(self, sizes: Floats) -> Floats:
        """Return the profile at epsilons >= 0, with relative rounding of some 1e-13."""
        values, weights = self._above
        last = len(self.losses) - 1
        # The first knot at or above: between two knots the profile is linear in e^epsilon.
        j = np.minimum(np.searchsorted(self.losses, sizes, side="left"), last)
        gap = np.minimum(sizes - self.losses[j], 0.0)
        return np.asarray(values[j + 1] - weights[j] * np.expm1(gap), dtype=np.float64)

    @property
    def variation(self) -> float:
        """The profile at 0, rounded to about 1e-13 of itself."""
        return float(self.mass @ -np.expm1(-self.losses)) + self.infinite


@dataclass(frozen=True, eq=False)
class LossLaw:
    """A law of losses on knots, and what counts as an infinite loss.

    Attributes:
        losses: knots > 0, ascending.
        mass: at each of them under P.
        infinite: mass of an infinite loss.
        origin: mass without loss.
        back: losses > 0 of the exchanged pair; e^-loss times their mass stands at -loss. None: the
            pair is symmetric, and these are the law's own.
    """

    losses: Floats
    mass: Floats
    infinite: float
    origin: float
    back: Side | None = None

    @cached_property
    def front(self) -> Side:
        """The losses > 0."""
        return Side(self.losses, self.mass, self.infinite)

    @property
    def behind(self) -> Side:
        """The losses > 0 of the exchanged pair."""
        return self.front if self.back is None else self.back

    @cached_property
    def atoms(self) -> tuple[Floats, Floats]:
        """All finite losses, ascending, and their masses under P."""
        behind = self.behind
        losses = np.concatenate([-behind.losses[::-1], [0.0], self.losses])
        below = (behind.mass * np.exp(-behind.losses))[::-1]
        return losses, np.concatenate([below, [self.origin], self.mass])

    @cached_property
    def total(self) -> float:
        """Upper bound on the mass of the whole measure, at least 1.

        Example:
            >>> round(connect(np.array([1.0]), np.array([0.4, 0.0])).total, 9)
            1.0
        """
        rounding = 1.0 + _ULPS * (len(self.losses) + len(self.behind.losses) + 4)
        return max(1.0, float((self.atoms[1].sum() + self.infinite) * rounding))

    def swapped(self) -> "LossLaw":
        """Return the law of the exchanged pair, which is this one if the pair is symmetric."""
        return self if self.back is None else join(self.back, self.front)

    def profile(self, epsilons: Floats) -> Floats:
        """Return the law's profile at any real epsilons, with relative rounding of some 1e-13.

        Every term is positive, so that nothing cancels.

        Example:
            >>> law = connect(np.array([1.0]), np.array([0.4, 0.0]))
            >>> law.profile(np.array([-1.0, 0.0, 0.5, 2.0])).round(6).tolist()
            [0.632121, 0.4, 0.248984, 0.0]
        """
        size = np.abs(epsilons)
        found = self.front.profile(size)
        mirrored = np.exp(-size)
        other = found if self.back is None else self.back.profile(size)
        below = self.total * (1.0 - mirrored) + mirrored * other
        return np.asarray(np.where(epsilons >= 0.0, found, below), dtype=np.float64)

    def log_moment(self, order: float) -> float:
        """Return log of the integral of exp(order * loss) without the infinite part, order > 0.

        Example:
            >>> law = connect(np.array([math.log(3.0)]), np.array([0.5, 0.0]))
            >>> round(law.log_moment(1.0), 9)
            0.84729786
        """
        behind = self.behind
        seen, other = self.mass > 0.0, behind.mass > 0.0
        ahead = np.log(self.mass[seen]) + order * self.losses[seen]
        terms = [ahead, np.log(behind.mass[other]) - (order + 1.0) * behind.losses[other]]
        if self.origin > 0.0:
            terms.append(np.array([math.log(self.origin)]))
        return float(scipy.special.logsumexp(np.concatenate(terms)))


def convex(losses: Floats, values: Floats) -> Floats:
    """Return upper bounds at 0 and at the knots that are no larger, and those of a symmetric pair.

    Given are upper bounds on the profiles of a pair in both directions, whose slack may differ from
    knot to knot. With c = e^loss a profile is convex in c, so a chord between two upper bounds is
    one too. At c = 1 both profiles are the total variation V, and their slopes there are -Q(P > Q)
    and -P(Q > P), which add up to at least V - 1; one of them is at least (V - 1)/2, so V (1 + (c -
    1)/2) <= H(c) + (c - 1)/2 for its profile H.

    Example:
        >>> convex(np.log([2.0, 3.0]), np.array([0.5, 0.45, 0.1])).round(6).tolist()
        [0.5, 0.3, 0.1]
    """
    at, y = np.append(0.0, np.expm1(losses)), np.minimum.accumulate(values)
    y[0] = min(y[0], float(((y + 0.5 * at) / (1.0 + 0.5 * at)).min()) * (1.0 + _ULPS))
    y = np.minimum(y, y[0])
    kept = [0]
    for new in range(1, len(at)):
        while len(kept) > 1:
            one, two = kept[-2], kept[-1]
            if (y[two] - y[one]) * (at[new] - at[one]) < (y[new] - y[one]) * (at[two] - at[one]):
                break
            kept.pop()
        kept.append(new)
    chords = np.interp(at, at[kept], y[kept]) * (1.0 + _ULPS)
    return np.asarray(np.minimum(y, chords))


def connect(losses: Floats, values: Floats) -> LossLaw:
    """Return the law whose profile joins upper bounds at 0 and at the knots (see the module).

    Args:
        losses: knots l_1 < ... < l_J, > 0.
        values: J + 1 upper bounds on the profile at 0, l_1, ..., l_J; the last one is what counts
            as an infinite loss.

    Example:
        >>> law = connect(np.array([0.5, 1.0]), np.array([0.4, 0.25, 0.1]))
        >>> law.infinite, bool(law.profile(np.array([0.5]))[0] >= 0.25)
        (0.1, True)
    """
    side = connect_side(losses, values)
    heavy = float(side.mass.sum() + (side.mass * np.exp(-losses)).sum()) + side.infinite
    origin = max(0.0, 1.0 - heavy + _ULPS * (len(losses) + 4))
    return LossLaw(losses, side.mass, side.infinite, origin)


def join(front: Side, back: Side) -> LossLaw:
    """Return the law of a pair whose two directions differ (see the module).

    Args:
        front: losses > 0 of the pair, from `connect_side`.
        back: losses > 0 of the exchanged pair.

    Example:
        >>> rare = connect_side(np.array([2.0]), np.array([0.1, 0.0]))
        >>> often = connect_side(np.array([0.2]), np.array([0.1, 0.0]))
        >>> law = join(rare, often)
        >>> law.profile(np.array([0.1, 1.0])).round(6).tolist()
        [0.098354, 0.073106]
        >>> law.swapped().profile(np.array([0.1, 1.0])).round(6).tolist()
        [0.052498, 0.0]
    """
    ahead, behind = front.variation, back.variation * (1.0 + 2e-12)
    if ahead < behind:
        scale = behind / ahead if ahead > 0.0 else 1.0
        lost = 0.0 if ahead > 0.0 else behind
        scale *= 1.0 + 2e-12
        front = Side(front.losses, front.mass * scale, front.infinite * scale + lost)
    heavy = float(front.mass.sum() + (back.mass * np.exp(-back.losses)).sum()) + front.infinite
    origin = max(0.0, 1.0 - heavy + _ULPS * (len(front.losses) + len(back.losses) + 4))
    return LossLaw(front.losses, front.mass, front.infinite, origin, back)


def connect_side(losses: Floats, values: Floats) -> Side:
    """Return the losses > 0 whose profile joins upper bounds, as for `connect`."""
    gaps = np.diff(losses, prepend=0.0)
    rises = np.maximum(values[:-1] - values[1:], 0.0) * (1.0 + _ULPS)
    with np.errstate(divide="ignore"):
        logs = np.log(rises / -np.expm1(-gaps)) - losses
    # The mass under Q of losses >= l_j may not rise with j.
    falling = np.maximum.accumulate(logs[::-1])[::-1]
    p = np.exp(falling + losses) * (1.0 + 4.0 * _ULPS * (1.0 + np.abs(losses)))
    after = np.append(p[1:] * np.exp(-gaps[1:]), 0.0)
    mass = np.maximum(p * (1.0 + _ULPS) - after, 0.0)
    return Side(losses, mass, float(values[-1]))
