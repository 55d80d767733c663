"""A sampled likelihood-ratio test: does any event refute the stated epsilon?"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv, betaincinv

from raydp_sim.check.events import Learned, learned
from raydp_sim.check.finding import NotChecked, check, require
from raydp_sim.check.samples import ALPHA, SERVER, folded, reports
from raydp_sim.check.subject import Subject
from raydp_sim.mechanisms.base import Floats
from raydp_sim.privacy.events import EnsembleRelease

# Inputs that are compared with each other; fewer where every sample is a release by itself.
_INPUTS, _INPUTS_OF_RELEASES = 4, 2
_LEAST, _MOST = 20_000, 400_000
_RELEASES = 10_000
# Numbers in all samples together, and among the messages of one release.
_CELLS, _SEEN = 1 << 22, 256


class Bounds(NamedTuple):
    """What is proved of an event: P(E | x) >= `least`, and P(E | x') <= `most`."""

    least: float
    most: float

    def epsilon(self, delta: float) -> float:
        """Return the epsilon that P(E | x) <= e^epsilon P(E | x') + delta needs at least.

        Example:
            >>> round(Bounds(0.9, 0.1).epsilon(0.0), 4)
            2.1972
        """
        return math.log((self.least - delta) / self.most) if self.least > delta else -math.inf


def clopper_pearson(hits: int, other: int, samples: int, alpha: float) -> Bounds:
    """Bound two probabilities from `hits` and `other` of so many samples each.

    Clopper & Pearson 1934: each bound is wrong with probability at most alpha.

    Example:
        >>> bounds = clopper_pearson(500, 0, 1000, 1e-6)
        >>> round(bounds.least, 4), round(bounds.most, 4)
        (0.4248, 0.0137)
    """
    least = float(betaincinv(hits, samples - hits + 1, alpha)) if hits else 0.0
    most = float(betainccinv(other + 1, samples - other, alpha)) if other < samples else 1.0
    return Bounds(least, most)


@check("sampled likelihood ratio")
def sampled_ratio(subject: Subject) -> str:
    """P(E | x) <= e^epsilon P(E | x') + delta for the events that tell two inputs apart best.

    Events are learned from one half of the samples, and their probabilities bounded with the other
    by Clopper & Pearson. An alarm is false with probability at most 1e-8, all pairs together. A
    report is one sample; of a guarantee that only a release has, so is a release: for a trusted
    aggregator the estimate of one client, behind a shuffler all messages of the clients it needs.
    """
    mechanism = subject.mechanism
    if mechanism.guarantee == "none":
        raise NotChecked("it states no guarantee")
    event = mechanism.event()
    if isinstance(event, EnsembleRelease):
        raise NotChecked("it protects the data behind the values, which are taken to be private")
    if math.isinf(event.epsilon):
        raise NotChecked("it states an infinite epsilon")
    chosen = far_apart(subject)
    if len(chosen) < 2:
        raise NotChecked("its domain has a single value")
    count = _samples(subject, len(chosen))
    alpha = ALPHA / (2 * len(chosen) * (len(chosen) - 1))
    sure = clopper_pearson(count // 2, 0, count // 2, alpha).epsilon(event.delta)
    if sure <= event.epsilon:
        raise NotChecked(
            f"{count:,} samples can prove an epsilon of {max(0.0, sure):.3g} at most, and "
            f"{event.epsilon:g} is stated; check it with a smaller epsilon or dimension"
        )
    views = [_views(subject, value, number, count) for number, value in enumerate(chosen)]
    # Of events that tell as much the first is named, whose inputs are farthest apart.
    best = max(learned(views), key=lambda one: _bounds(one, alpha).epsilon(event.delta))
    bounds = _bounds(best, alpha)
    seen = bounds.epsilon(event.delta)
    require(
        seen <= event.epsilon,
        f"an event has probability at least {bounds.least:.3g} for {_shown(chosen[best.one])} and "
        f"at most {bounds.most:.2g} for {_shown(chosen[best.other])}, so epsilon is at least "
        f"{seen:.3g}; {event.epsilon:.4g} is stated",
    )
    return (
        f"epsilon is at least {max(0.0, seen):.3g}, {event.epsilon:.4g} stated; {len(chosen)} "
        f"inputs, {count:,} samples each"
    )


def _bounds(event: Learned, alpha: float) -> Bounds:
    return clopper_pearson(event.hits, event.others, event.samples, alpha)


def far_apart(subject: Subject) -> Floats:
    """Return a few inputs, each as far as can be from those before it."""
    values = np.unique(subject.values, axis=0)
    embedded = subject.mechanism.domain.embed(values)
    most = _INPUTS if _alone(subject) else _INPUTS_OF_RELEASES
    taken = [int(np.argmax((embedded**2).sum(axis=1)))]
    distance = np.full(len(values), np.inf)
    while len(taken) < min(most, len(values)):
        distance = np.minimum(distance, ((embedded - embedded[taken[-1]]) ** 2).sum(axis=1))
        taken.append(int(np.argmax(distance)))
    return np.asarray(values[taken])


def _alone(subject: Subject) -> bool:
    """Say whether a report alone has the guarantee."""
    mechanism = subject.mechanism
    return mechanism.where == "client" and mechanism.guarantee != "shuffled-only"


def _batch(subject: Subject) -> int:
    """Return how many clients a sample takes."""
    event = subject.mechanism.event()
    return int(getattr(event, "n", 1)) if subject.mechanism.where == "client" else 1


def _samples(subject: Subject, inputs: int) -> int:
    """Return how many samples of each input to draw, an even number."""
    wide = max(1, int(reports(subject.mechanism, subject.values[:1])[0].size))
    fits = _CELLS // (inputs * wide * _batch(subject))
    if not _alone(subject):
        return min(_RELEASES, fits) // 2 * 2
    # Enough that an event that is certain for one input and never seen for another refutes it.
    wanted = 100.0 * math.exp(min(subject.mechanism.event().epsilon, 20.0))
    return int(min(max(_LEAST, min(wanted, _MOST)), fits)) // 2 * 2


def _views(subject: Subject, value: Floats, number: int, count: int) -> NDArray[np.float64]:
    """Draw what the observer sees if a client holds a value, one row per sample."""
    mechanism, batch = subject.mechanism, _batch(subject)
    values = np.tile(value, (count * batch, 1))
    if batch > 1:
        # The others hold the same whatever this client holds.
        values.reshape(count, batch, -1)[:, 1:] = subject.values[0]
    payload = reports(mechanism, values, seed=9, first=number * len(values))
    if _alone(subject):
        return payload.reshape(count, -1).astype(np.float64)
    stream, sent = SERVER.at("sampled", number), np.split(payload, count)
    # Clients of a trusted aggregator send what they hold, which is the same in every sample.
    same = folded(mechanism, sent[0]) if (payload == payload[:1]).all() and batch == 1 else None
    estimates = np.array(
        [
            mechanism.decode(folded(mechanism, part) if same is None else same, stream.at(release))
            for release, part in enumerate(sent)
        ]
    )
    if mechanism.where == "aggregator" or payload[0].size * batch > _SEEN:
        return estimates
    # Sorted column by column, messages say no more than the shuffled stream does.
    rows = payload.reshape(count, batch * payload.shape[1], -1).astype(np.float64)
    return np.concatenate([estimates, np.sort(rows, axis=1).reshape(count, -1)], axis=1)


def _shown(value: Floats) -> str:
    numbers = ", ".join(f"{number:.3g}" for number in value[:4])
    return f"({numbers}{', ...' if len(value) > 4 else ''})"
