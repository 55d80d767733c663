"""Yes-or-no questions about what was seen, and the epsilon that their answers prove at least.

For neighbours Q and P and any question, (epsilon, delta)-DP says P(yes) <= e^epsilon Q(yes) + delta
and Q(no) <= e^epsilon P(no) + delta. With gain = P(yes) - Q(yes) = Q(no) - P(no) either one gives

    epsilon >= log(1 + (gain - delta) / min(Q(yes), P(no))),
    delta >= gain - (e^epsilon - 1) min(Q(yes), P(no)).

So one question whose three probabilities are known is a certified lower bound, whatever the bounds
on the same run say. This is all that the floors rest on: binomial tails in closed form, no loss
distribution, no convolution and nothing of the modules that compute either.

Rounding: tails and probabilities are computed within 1e-9 of themselves up to `MOST` trials (the
tests compare with 40 digits, within 1e-11 while the standard deviation is below 300) and widened by
`ROUNDING`, always to the side that lowers the floor. Where a bound below says "least" or "most"
that is included.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from raydp_sim.privacy.floors.tails import TINY, binomial, tails

Floats = NDArray[np.float64]

ROUNDING = 1e-8
MOST = 10**12
_DOWN, _UP = 1.0 - ROUNDING, 1.0 + ROUNDING
# Of these probabilities of yes or of no a question is picked to be asked again and again.
_YES = (0.5, 0.3, 0.15, 0.05, 0.01, 1e-3, 1e-5, 1e-8)
_NO = (0.3, 0.1, 0.01, 1e-4)
_DEVIATIONS = np.arange(0.0, 37.0, 0.25)


@dataclass(frozen=True)
class Questions:
    """Several questions about one view; each attribute has one entry per question.

    Attributes:
        yes_least, yes_most: what Q(yes) lies between.
        no_least, no_most: what Q(no) lies between.
        missed: P(no) at most.
        gain: P(yes) - Q(yes) at least.

    Example:
        >>> coin = answers(yes=0.25, lift=0.5, miss=0.25)  # randomized response, epsilon0 = log 3
        >>> round(math.exp(coin.epsilon(0.0)), 6), round(coin.epsilon(0.5), 6)
        (3.0, 0.0)
    """

    yes_least: Floats
    yes_most: Floats
    no_least: Floats
    no_most: Floats
    missed: Floats
    gain: Floats

    def epsilon(self, delta: float) -> float:
        """Return the largest epsilon that a question rules out at delta, 0 if none does."""
        over = self.gain - delta
        gained = over > 0.0
        if not np.any(gained):
            return 0.0
        rarer = np.minimum(self.yes_most, self.missed)[gained]
        # What has underflowed to nothing is still something.
        return float(np.max(np.log1p(over[gained] / np.maximum(rarer, TINY))))

    def delta(self, epsilon: float) -> float:
        """Return the largest delta that a question rules out at epsilon; at 0, a variation."""
        rarer = np.minimum(self.yes_most, self.missed)
        return max(0.0, float(np.max(self.gain - math.expm1(epsilon) * rarer)))

    def sampled(self, rate: float) -> "Questions":
        """Return the same questions where the victim is in the view only with this probability.

        P becomes (1 - rate) Q + rate P if Q is also what is seen without the victim: everyone else
        holds what the victim holds under Q, so who else was drawn changes nothing.
        """
        missed = (1.0 - rate) * self.no_most + rate * self.missed
        still = (self.yes_least, self.yes_most, self.no_least, self.no_most)
        return Questions(*still, missed * _UP, rate * self.gain * _DOWN)

    def repeated(self, times: int, delta: float) -> "Questions":
        """Ask how many of independent views were answered yes: at least m?

        Q(at least m) is the tail of Bin(times, Q(yes)), and the gain is the integral of
        times b(m - 1; times - 1, x) over x from Q(yes) to P(yes), b the binomial probability. That
        is log-concave in x, so the integral is no less than the gain of one view times the lesser
        of the integrand's values at two points that enclose them; or than the difference of the
        tails, where that loses fewer digits. Rounds that are asked adaptively, or of which only
        some are looked at, can tell no less.

        Args:
            times: how many views, >= 1.
            delta: for which to choose the questions and m; any choice is valid.
        """
        one = self._few()
        share, count = _counts(one, times, delta)
        return Questions(*(values[share] for values in one._values()))._at_least(count, times)

    def _few(self) -> "Questions":
        """Pick questions that are answered yes, or no, about as often as the lists above say."""
        order = np.argsort(self.yes_most)
        by_yes = np.searchsorted(self.yes_most[order], _YES)
        rank = np.argsort(self.no_most)
        by_no = np.searchsorted(self.no_most[rank], _NO)
        last = len(order) - 1
        picked = np.concatenate(
            [order[np.minimum(by_yes, last)], rank[np.minimum(by_no, last)], [self.gain.argmax()]]
        )
        chosen = np.unique(picked)
        chosen = chosen[self.gain[chosen] > 0.0] if np.any(self.gain > 0.0) else chosen[:1]
        return Questions(*(values[chosen] for values in self._values()))

    def _values(self) -> tuple[Floats, ...]:
        return (
            self.yes_least,
            self.yes_most,
            self.no_least,
            self.no_most,
            self.missed,
            self.gain,
        )

    def _at_least(self, count: Floats, times: int) -> "Questions":
        """Ask the i-th question of every view: is it answered yes at least count[i] times?"""
        raised = np.minimum(self.yes_least + self.gain, 1.0)  # P(yes) at least
        most, no_least = tails(count, times, self.yes_most, self.no_least)
        least, no_most = tails(count, times, self.yes_least, self.no_most)
        hit, missed = tails(count, times, raised, self.missed)
        ends = (self.yes_least, np.minimum(self.yes_most + self.gain, 1.0))
        slopes = [binomial(count - 1.0, times - 1.0, x) for x in ends]
        gain = np.maximum(
            times * self.gain * np.minimum(*slopes) * _DOWN,
            np.maximum(hit * _DOWN - most * _UP, no_least * _DOWN - missed * _UP),
        )
        return Questions(
            least * _DOWN,
            np.minimum(most * _UP, 1.0),
            no_least * _DOWN,
            np.minimum(no_most * _UP, 1.0),
            np.minimum(missed * _UP, 1.0),
            np.maximum(gain, 0.0),
        )


def answers(yes: float, lift: float, miss: float) -> Questions:
    """Ask one message itself: Q says yes with probability `yes`, P with `yes + lift`.

    Args:
        yes: in [0, 1].
        lift: in [0, 1 - yes].
        miss: 1 - yes - lift, given apart because the difference loses its digits near 0.
    """
    no = ((1.0 - yes) * _DOWN, 1.0 - yes * _DOWN)
    values = (yes * _DOWN, yes * _UP, *no, miss * _UP, lift * _DOWN)
    return Questions(*(np.array([value]) for value in values))


def counted(yes: float, lift: float, miss: float, messages: int) -> Questions:
    """Ask a shuffled batch how many of its messages say yes: at least c?

    All messages but the victim's say yes with probability `yes`, and so does the victim's under Q;
    under P it is `yes + lift`. Q(at least c) is the tail of Bin(messages, yes), and the gain is
    lift b(c - 1; messages - 1, yes) exactly: the victim decides where c - 1 others said yes.

    The likelihood ratio of the count grows with it, so these are the best questions about it
    (Neyman & Pearson); all c are asked up to 120 messages, beyond that a quarter or less of a
    standard deviation apart.

    Args:
        yes: in [0, 1).
        lift: in [0, 1 - yes].
        miss: 1 - yes - lift.
        messages: >= 1.

    Example:
        >>> round(counted(0.25, 0.5, 0.25, 100).delta(0.0), 6)  # the total variation of 100 coins
        0.0459
    """
    c = _thresholds(yes, messages)
    x = np.full(len(c), yes)
    most, no = tails(c, messages, x, 1.0 - x)
    gain = lift * binomial(c - 1.0, messages - 1.0, x)
    missed = no - gain
    # Where nearly every no turns into a yes the difference loses its digits: the victim said no
    # and fewer than c of the others yes, or it said yes and fewer than c - 1.
    close = gain > 0.5 * no
    if np.any(close):
        few = c[close]
        below = scipy.special.betaincc(few, np.maximum(messages - few, 0.5), yes)
        lower = scipy.special.betaincc(np.maximum(few - 1.0, 0.5), messages - few + 1.0, yes)
        below, lower = np.where(few == messages, 1.0, below), np.where(few == 1.0, 0.0, lower)
        missed[close] = miss * below + (yes + lift) * lower
    return Questions(
        most * _DOWN,
        np.minimum(most * _UP, 1.0),
        no * _DOWN,
        np.minimum(no * _UP, 1.0),
        np.maximum(missed, 0.0) * _UP,
        gain * _DOWN,
    )


def shifted(distance: float) -> Questions:
    """Ask a number with standard normal noise whether it exceeds t; P has it shifted by distance.

    Example:
        >>> round(shifted(1.0).delta(0.0), 3)
        0.383
    """
    t = np.arange(-9.0, 9.0 + min(distance, 38.0), 0.01) + 0.5 * max(0.0, distance - 38.0)
    yes, no, missed = (
        scipy.special.ndtr(-t),
        scipy.special.ndtr(t),
        scipy.special.ndtr(t - distance),
    )
    density = np.exp(-0.5 * np.maximum(t * t, (t - distance) ** 2)) / math.sqrt(2.0 * math.pi)
    # The density is unimodal, so its integral is at least its lesser end times the distance.
    apart = np.maximum(
        scipy.special.ndtr(distance - t) * _DOWN - yes * _UP,
        np.maximum(no * _DOWN - missed * _UP, distance * density * _DOWN),
    )
    return Questions(yes * _DOWN, yes * _UP, no * _DOWN, no * _UP, missed * _UP, apart)


def _thresholds(yes: float, messages: int) -> Floats:
    """Return the counts to ask about."""
    if messages <= 120:
        return np.arange(1.0, messages + 1.0)
    mean, spread = messages * yes, math.sqrt(messages * yes * (1.0 - yes))
    around = np.concatenate([np.linspace(-9.0, 9.0, 73), np.linspace(10.0, 37.0, 19)])
    asked = np.concatenate([np.arange(1.0, 13.0), [messages], np.round(mean + around * spread)])
    return np.unique(np.clip(asked, 1.0, messages))


def _counts(one: Questions, times: int, delta: float) -> tuple[NDArray[np.intp], Floats]:
    """Return which question to ask of every view, and how many yes to look for.

    They are chosen as if the number of yes were normal: the best threshold then, on both sides, and
    some more, for it is not.
    """
    yes, gain = one.yes_most[:, None], one.gain[:, None]
    spread = np.sqrt(np.maximum(times * yes * one.no_most[:, None], TINY))
    distance = np.minimum(times * gain / spread, 30.0)
    above = scipy.special.ndtr(-_DEVIATIONS)
    over = scipy.special.ndtr(distance - _DEVIATIONS) - above - delta
    best = _DEVIATIONS[np.argmax(np.log1p(np.maximum(over, 0.0) / above), axis=1)][:, None]
    steps = best + np.array([-1.5, -0.75, -0.25, 0.0, 0.25, 0.75, 1.5, 3.0])
    raised = times * np.minimum(yes + gain, 1.0)
    width = np.sqrt(np.maximum(raised * one.missed[:, None], 0.0))
    between = times * (yes + gain * np.array([0.25, 0.5, 0.75, 1.0]))
    few = np.broadcast_to([1.0, 2.0, 3.0, 4.0, 6.0, times - 1.0, times], (len(yes), 7))
    m = np.concatenate([times * yes + steps * spread, raised - steps * width, between, few], axis=1)
    m = np.clip(np.round(m), 1.0, times)
    share = np.broadcast_to(np.arange(len(yes))[:, None], m.shape)
    _, once = np.unique(share * (times + 1.0) + m, return_index=True)  # many are asked twice
    return share.ravel()[once], m.ravel()[once]
