"""Contextual bandits with a known law of contexts, reduced to linear ones (000 Section 6.3.1).

A direction theta is a policy: in context c play a_theta(c) = argmax_a <phi(a, c), theta>, the
lowest index among equals. Its mean feature g(theta) = E phi(a_theta(c), c) is an action of a linear
bandit: a client with its own context that follows theta earns <g(theta), theta*> on average (Hanna,
Yang and Fragouli 2023; the text forgets phi in g). So the learner plays with the table of policies,
and clients send rewards only: neither their context nor what they played leaves them. As round t's
own play may depend on c_t, the guarantee is joint DP: what others are asked later tells little of
c_t and of the reward.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from raydp_sim.errors import InputError, bad_field
from raydp_sim.random import Stream
from raydp_sim.tasks.bandits.checks import Floats, Ints, check_theta

_DIGITS = 12
_SAME_ANGLE = 1e-12


@dataclass(frozen=True, eq=False)
class Contexts:
    """Features of every action in every context, and how often contexts occur; all public.

    A continuous law is stood for by a fixed public sample, each with the same probability. Then g
    is that of the sample: what the sample gets wrong is not in any certificate.

    Attributes:
        features: phi, of shape (contexts, actions, dimension). It is enough that
            g is of length <= 1 and that rewards have means in their range.
        probabilities: of the contexts; they add up to 1.
    """

    features: Floats
    probabilities: Floats

    def __post_init__(self) -> None:
        features = np.array(self.features, dtype=np.float64)
        if features.ndim != 3:
            remedy = "give (contexts, actions, dimension)"
            raise InputError(f"features has shape {features.shape}; {remedy}")
        if features.size == 0 or not np.isfinite(features).all():
            raise InputError("features are not all finite, or there are none; give finite numbers")
        chances = np.array(self.probabilities, dtype=np.float64)
        if chances.shape != (len(features),) or not (chances >= 0.0).all():
            raise bad_field("probabilities", chances, f"give {len(features)} numbers >= 0")
        if abs(chances.sum() - 1.0) > 1e-9:
            raise bad_field("probabilities", chances, "they must add up to 1")
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "probabilities", chances / chances.sum())

    def greedy(self, theta: Floats) -> Ints:
        """Return what policies play in every context: (..., contexts), the lowest among equals."""
        values = np.einsum("cad,...d->...ca", self.features, theta)
        return np.asarray(values.argmax(axis=-1), dtype=np.int64)

    def features_of(self, play: Ints) -> Floats:
        """Return the feature of what is played in every context: (..., contexts, dimension)."""
        return np.asarray(self.features[np.arange(len(self.features)), play])

    def mean_feature(self, theta: Floats) -> Floats:
        """Return g of policies: (..., dimension)."""
        return np.asarray(self.probabilities @ self.features_of(self.greedy(theta)))

    def optimum(self, theta: Floats) -> float:
        """Return E max_a <phi(a, c), theta>, which is <g(theta), theta>: no policy earns more."""
        return float(self.probabilities @ (self.features @ theta).max(axis=1))


@dataclass(frozen=True, eq=False)
class PolicyTable:
    """Policies, as actions of a linear bandit.

    Attributes:
        directions: theta of each, one per row.
        actions: g(theta) of each.
        complete: whether the best policy is among them for sure, whatever theta* is.
    """

    directions: Floats
    actions: Floats
    complete: bool = False


def plane_policies(contexts: Contexts) -> PolicyTable:
    """Return every policy there is in the plane, exactly.

    Which action is best in a context changes only where theta is orthogonal to a difference of two
    features; one direction from every arc between two such angles is enough.

    Example:
        >>> two = Contexts(np.array([[[1.0, 0.0], [0.0, 1.0]]]), np.array([1.0]))
        >>> plane_policies(two).actions.tolist()
        [[0.0, 1.0], [1.0, 0.0]]
    """
    return _table(contexts, plane_directions(contexts), complete=True)


def plane_directions(contexts: Contexts) -> Floats:
    """Return one direction of every arc of the plane on which a policy is the same."""
    if contexts.features.shape[2] != 2:
        given = f"features have {contexts.features.shape[2]} dimensions"
        raise InputError(f"{given}; arcs are of the plane, so take `sampled_policies`")
    differences = contexts.features[:, :, None, :] - contexts.features[:, None, :, :]
    flat = differences.reshape(-1, 2)
    flat = flat[np.abs(flat).max(axis=1) > 0.0]
    # Both signs are there, so are both directions that are orthogonal to a difference.
    critical = np.unique(np.mod(np.arctan2(flat[:, 0], -flat[:, 1]), 2.0 * math.pi))
    if not len(critical):
        return np.array([[1.0, 0.0]])
    # Angles that differ by rounding only have no direction between them.
    critical = critical[np.diff(critical, append=np.inf) > _SAME_ANGLE]
    middles = (critical + np.append(critical[1:], critical[0] + 2.0 * math.pi)) / 2.0
    return np.stack([np.cos(middles), np.sin(middles)], axis=1)


def sampled_policies(
    contexts: Contexts, count: int, stream: Stream, candidates: ArrayLike | None = None
) -> PolicyTable:
    """Return the policies of directions drawn uniformly on the sphere, and of the user's own.

    g is piecewise constant, so a net of directions is none of policies: rare ones may be missed.

    Args:
        contexts: features and probabilities.
        count: directions to draw, >= 1.
        stream: that they are drawn from.
        candidates: directions to include in any case, one per row.
    """
    return _table(contexts, sampled_directions(contexts, count, stream, candidates))


def sampled_directions(
    contexts: Contexts, count: int, stream: Stream, candidates: ArrayLike | None = None
) -> Floats:
    """Draw directions for `sampled_policies`."""
    if count < 1:
        raise bad_field("count", count, "it must be >= 1")
    normal = stream.generator().standard_normal((count, contexts.features.shape[2]))
    drawn = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    if candidates is not None:
        own = np.atleast_2d(np.asarray(candidates, dtype=np.float64))
        if own.shape[1] != drawn.shape[1]:
            raise InputError(
                f"candidates have shape {own.shape}; give rows of {drawn.shape[1]} numbers"
            )
        drawn = np.concatenate([own, drawn])
    return np.asarray(drawn)


def estimated_policies(
    contexts: Contexts, directions: Floats, complete: bool = False
) -> PolicyTable:
    """Return the policies of directions that play differently, with their estimated features.

    Where probabilities are estimates, policies with one mean feature need not have one in truth:
    contexts that were never seen would hide what they play there.

    Args:
        contexts: with estimated probabilities.
        directions: of `plane_directions` or `sampled_directions`.
        complete: whether directions of all policies are among them.
    """
    _, first = np.unique(contexts.greedy(directions), axis=0, return_index=True)
    kept = directions[first]
    return PolicyTable(kept, contexts.mean_feature(kept), complete)


def _table(contexts: Contexts, directions: Floats, complete: bool = False) -> PolicyTable:
    """Keep one direction for each mean feature, in the order of the features."""
    actions = contexts.mean_feature(directions)
    # Adding 0 makes one zero of the two.
    _, first = np.unique(np.round(actions, _DIGITS) + 0.0, axis=0, return_index=True)
    return PolicyTable(directions[first], actions[first], complete)


@dataclass(frozen=True, eq=False)
class ContextualInstance:
    """Contexts, a table of policies, and the vector that rewards follow.

    Attributes:
        contexts: as they are in truth.
        table: of the policies that the learner may play.
        theta: theta*, of length <= 1.
    """

    contexts: Contexts
    table: PolicyTable
    theta: Floats

    def __post_init__(self) -> None:
        dimension = self.contexts.features.shape[2]
        object.__setattr__(self, "theta", check_theta(self.theta, dimension))

    @property
    def means(self) -> Floats:
        """Mean reward of each policy in each context: (policies, contexts)."""
        play = self.contexts.greedy(self.table.directions)
        return np.asarray(self.contexts.features_of(play) @ self.theta)

    @property
    def gaps(self) -> Floats:
        """What each policy loses in each context to the best action: (policies, contexts)."""
        return np.asarray((self.contexts.features @ self.theta).max(axis=1) - self.means)

    @property
    def linear_gaps(self) -> Floats:
        """What each policy loses on average to the best policy there is."""
        return np.asarray(self.contexts.probabilities @ self.gaps.T)
