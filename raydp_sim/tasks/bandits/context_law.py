"""The law of contexts where nobody knows it: estimated, with a bound on what is wrong with it.

The text assumes a known law. Here it is estimated from a public sample, or privately in the run's
first releases by clients that serve in no other batch. Policies depend on features alone, so they
are all known; only their mean features g are off: with an estimate that is off by t in l1, a
policy's mean reward differs from <g(theta), theta*> by (high - low) t/2 at most, because shares
that add up to the same weigh mean rewards within [low, high]. The learner plays a misspecified
linear bandit, and its certificate has a term for that (`certificate`).

How far off: the share p(S) of a set S of contexts is estimated by the mean of n independent
variables of width w (1 for a sample, 1/kept for randomized response), and the l1 distance of two
laws is twice the largest difference of p(S). By Hoeffding and a union over all 2^k - 2 sets that
can differ it exceeds w sqrt(2 log((2^k - 2)/beta)/n) with probability beta at most; without privacy
that is Weissman et al. 2003, Theorem 2.1.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy

from raydp_sim.errors import bad_field
from raydp_sim.mechanisms.krr import KaryResponse
from raydp_sim.tasks.bandits.checks import Floats, Ints
from raydp_sim.tasks.bandits.contextual import Contexts
from raydp_sim.tasks.bandits.rewards import RewardRange


@dataclass(frozen=True, eq=False)
class Estimated:
    """An estimated law of contexts.

    Attributes:
        contexts: features with the estimated probabilities.
        off: its l1 distance to the true law at most...
        beta: ...but with this probability.
    """

    contexts: Contexts
    off: float
    beta: float

    def misspecification(self, rewards: RewardRange) -> float:
        """Return how far a policy's mean reward is from that of its estimated mean feature."""
        return 0.5 * rewards.width * self.off


def from_sample(features: Floats, counts: Ints, beta: float) -> Estimated:
    """Estimate from a public sample of clients' contexts, none of whom is in the run.

    Args:
        features: of every action in every context.
        counts: of the contexts in the sample.
        beta: that the bound fails with, in (0, 1).

    Example:
        >>> features = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.5], [0.5, 0.0]]])
        >>> found = from_sample(features, np.array([300, 700]), beta=0.01)
        >>> found.contexts.probabilities.tolist(), round(found.off, 4)
        ([0.3, 0.7], 0.1029)
    """
    size = _check_counts(counts, len(features))
    return _estimated(features, counts / size, _deviation(1.0, len(counts), size, beta), beta)


def from_reports(features: Floats, counts: Ints, mechanism: KaryResponse, beta: float) -> Estimated:
    """Estimate from contexts that went through k-ary randomized response.

    Args:
        features: of every action in every context.
        counts: of the reports.
        mechanism: that clients used; its loss is theirs, and behind a shuffler amplified.
        beta: that the bound fails with, in (0, 1).

    Example:
        >>> features = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.5], [0.5, 0.0]]])
        >>> response = KaryResponse(epsilon_local=2.0, categories=2)
        >>> found = from_reports(features, np.array([400, 600]), response, beta=0.01)
        >>> found.contexts.probabilities.round(3).tolist(), round(found.off, 3)
        ([0.369, 0.631], 0.135)
    """
    size = _check_counts(counts, len(features))
    law = mechanism.laws(np.arange(len(features), dtype=np.float64)[:, None])[0]
    each, kept = float(law[0, 1]), float(law[0, 0] - law[0, 1])
    raw = (counts / size - each) / kept
    return _estimated(features, raw, _deviation(1.0 / kept, len(counts), size, beta), beta)


def from_noisy_shares(
    features: Floats, shares: Floats, clients: int, scale: float, beta: float
) -> Estimated:
    """Estimate from shares to which a trusted learner added Laplace noise of a known scale.

    Half of beta is for the sample. The other half is for the noise: the sum of k absolute values
    of Laplace noise is scale times a gamma variable of shape k.

    Args:
        features: of every action in every context.
        shares: of the contexts, noise included.
        clients: whose contexts they are.
        scale: of the noise: 2/(clients epsilon), as replacing a client moves two shares.
        beta: that the bound fails with, in (0, 1).
    """
    if np.shape(shares) != (len(features),) or not np.isfinite(shares).all():
        raise bad_field("shares", shares, f"give {len(features)} finite numbers")
    noise = scale * float(scipy.stats.gamma.isf(beta / 2.0, len(shares)))
    sampled = _deviation(1.0, len(shares), clients, beta / 2.0)
    return _estimated(features, np.asarray(shares, np.float64), sampled + noise, beta)


def _estimated(features: Floats, raw: Floats, deviation: float, beta: float) -> Estimated:
    """Move an estimate to the nearest law; how far that is is known, and added to the bound."""
    law = nearest_law(raw)
    off = deviation + float(np.abs(law - raw).sum())
    return Estimated(Contexts(features, law), min(2.0, off), beta)


def nearest_law(raw: Floats) -> Floats:
    """Return the nearest vector of shares >= 0 that add up to 1, in Euclid's distance.

    Example:
        >>> nearest_law(np.array([0.75, 0.5, -0.25])).tolist()
        [0.625, 0.375, 0.0]
    """
    falling = np.sort(raw)[::-1]
    excess = (np.cumsum(falling) - 1.0) / np.arange(1, len(raw) + 1)
    kept = int(np.flatnonzero(falling > excess)[-1])
    law = np.maximum(raw - excess[kept], 0.0)
    return np.asarray(law / law.sum())


def _deviation(width: float, contexts: int, size: int, beta: float) -> float:
    if not 0.0 < beta < 1.0:
        raise bad_field("beta", beta, "it must lie in (0, 1)")
    if contexts == 1:
        return 0.0  # nothing to estimate
    # log(2^k - 2), without 2^k
    sets = contexts * math.log(2.0) + math.log1p(-(2.0 ** (1 - contexts)))
    return width * math.sqrt(2.0 * (sets - math.log(beta)) / size)


def _check_counts(counts: Ints, contexts: int) -> int:
    counts = np.asarray(counts)
    good = counts.shape == (contexts,) and np.issubdtype(counts.dtype, np.integer)
    if not good or (counts < 0).any() or counts.sum() < 1:
        raise bad_field("counts", counts, f"give {contexts} whole numbers >= 0, not all of them 0")
    return int(counts.sum())
