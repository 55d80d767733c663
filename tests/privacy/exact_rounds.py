"""One round of a shuffle as a list of atoms, for the oracle of composition.

Dominating pairs: clones (of any randomizer; stronger ones for 2RR) and the blanket of k-RR, and the
pair of a secret uniform sample. Actual laws: 2RR and k-RR, sampled or not, on the dataset where all
others hold the same symbol. The last two are what no bound on any randomizer may be below.

All are mixtures over a revealed number m of coins, of which a show heads. A row of the table below
is one value of m, and its atoms have

    p = coin(m, a) (A a/m + B (m - a)/m + C),    q the same with a and m - a exchanged,

coin(m, a) = C(m, a)/2^m, so p - q = coin(m, a) (A - B) (2a - m)/m, without cancellation. Weights of
binomials are products of ratios in extended precision. Tails below `CUT` are left out and counted.
"""

import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from tests.privacy.exact_composition import ULP, Array, Atoms

Long = np.longdouble
Longs = NDArray[np.longdouble]

# Far below 1e-14, the least delta asked for, even times the 1e6 of a small sampling rate.
CUT = 1e-24
_MOST_COINS = 1002


def binomial(n: int, p: Long, rest: Long) -> Longs:
    """Return Pr[Bin(n, p) = k] for k = 0..n, where rest = 1 - p, to 2n roundings."""
    k = np.arange(1, n + 1, dtype=Long)
    ratio = (n + 1 - k) / k * (p / rest)
    mode = int(np.count_nonzero(ratio > 1.0))
    up = np.cumprod(np.append(Long(1.0), ratio[mode:]))
    down = np.cumprod(1.0 / ratio[:mode][::-1])[::-1]
    weights = np.concatenate([down, up])
    return weights / weights.sum()


@cache
def _coins() -> Array:
    """Return C(m, a)/2^m for all m <= 1001, by Pascal's triangle, exact to 1e-15."""
    table = np.zeros((_MOST_COINS, _MOST_COINS))
    row = np.zeros(_MOST_COINS, dtype=Long)
    row[0] = 1.0
    table[0] = row
    for m in range(1, _MOST_COINS):
        row[1:] = Long(0.5) * (row[1:] + row[:-1])
        row[0] *= Long(0.5)
        table[m] = row
    return table


def _error(n: int) -> float:
    """Relative error of an atom: of weights in extended precision and of a few products."""
    return 16.0 * ULP + 8.0 * n * float(np.finfo(Long).eps)


@dataclass(frozen=True)
class Rows:
    """The table described above; `lean` is A - B."""

    m: NDArray[np.int64]
    heads: Array
    tails: Array
    plain: Array
    lean: Array

    def sampled(self, rate: float, without: Array) -> "Rows":
        """Return the rows if the victim is sampled with this rate; `without` holds if it is not."""
        plain = rate * self.plain + (1.0 - rate) * without
        return Rows(self.m, rate * self.heads, rate * self.tails, plain, rate * self.lean)

    def atoms(self, n: int) -> Atoms:
        """Return the atoms, mirror images side by side."""
        weight = self.heads + self.tails + self.plain
        kept = weight > CUT
        lost = float(weight[~kept].sum())
        m, heads, tails, plain, lean = (
            part[kept] for part in (self.m, self.heads, self.tails, self.plain, self.lean)
        )
        # coin(m, a) <= exp(-2 (a - m/2)^2/m): beyond the reach it is below CUT.
        reach = np.ceil(np.sqrt(-0.5 * math.log(CUT) * m)).astype(np.int64)
        half = (m + 1) // 2
        count = np.minimum(m, m // 2 + reach) - half + 1
        row = np.repeat(np.arange(len(m)), count)
        a = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count) + half[row]
        share = a / np.maximum(m[row], 1)
        other = (m[row] - a) / np.maximum(m[row], 1)
        coin = _coins()[m[row], a]
        p = coin * (heads[row] * share + tails[row] * other + plain[row])
        q = coin * (heads[row] * other + tails[row] * share + plain[row])
        d = coin * lean[row] * ((2 * a - m[row]) / np.maximum(m[row], 1))
        lost += float((2.0 * CUT * weight[kept] * m)[m // 2 + reach < m].sum())
        return _mirrored(p, q, d, _error(n), lost)


def _mirrored(p: Array, q: Array, d: Array, error: float, lost: float) -> Atoms:
    """Return atoms of loss >= 0 and the mirror images of those of loss > 0."""
    some = d > 0.0
    both = [np.concatenate([x, y[some]]) for x, y in ((p, q), (q, p), (d, -d))]
    return Atoms(*both, np.abs(both[2]), error, lost, exact=lost == 0.0)


def clones(epsilon0: float, n: int, stronger: bool = False, rate: float = 1.0) -> Atoms:
    """Return the clone pair: C ~ Bin(n-1, g), g = e^-epsilon0, or 2/(e^epsilon0 + 1) if stronger.

    Given C there are m = C + 1 coins, one of which shows heads with probability E/(E + 1) under P
    and 1/(E + 1) under Q. With a rate below 1 the batch lacks the victim otherwise, and then it has
    m ~ Bin(n, g) fair coins (law_rounds.py).
    """
    loss = Long(epsilon0)
    tilt = np.tanh(loss / 2)
    g, rest = (1 - tilt, tilt) if stronger else (np.exp(-loss), -np.expm1(-loss))
    weight = binomial(n - 1, g, rest)
    head = 2 / (1 + np.exp(-loss))
    parts = (head * weight, (2 - head) * weight, 0 * weight, 2 * tilt * weight)
    if rate == 1.0:
        return Rows(np.arange(1, n + 1), *(_double(part) for part in parts)).atoms(n)
    padded = (_double(np.append(Long(0.0), part)) for part in parts)
    absent = _double(binomial(n, g, rest))
    return Rows(np.arange(n + 1), *padded).sampled(rate, absent).atoms(n)


def blanket(epsilon0: float, n: int, alphabet: int, rate: float = 1.0) -> Atoms:
    """Return the blanket pair of k-RR over `alphabet` symbols; the theorem is in blanket.py.

    With a rate below 1 the batch lacks the victim otherwise: M ~ Bin(n, g), t ~ Bin(M, 2/k) and
    fair coins (law_rounds.py).

    M ~ Bin(n-1, g) and t ~ Bin(M + 1, 2/k) are revealed, g = k/(E + k - 1). Of the t coins N0 show
    heads, and the outcome is weighed by g (E N0 + N1 + M + 1 - t)/(M + 1).
    """
    e = np.exp(Long(epsilon0))
    total = e + alphabet - 1
    g = alphabet / total
    hiding = binomial(n - 1, g, np.expm1(Long(epsilon0)) / total)
    hidden = binomial(n, g, np.expm1(Long(epsilon0)) / total)
    rows: list[tuple[Longs, ...]] = []
    share = Long(2.0) / alphabet
    for m in np.flatnonzero(hiding > CUT):
        t = np.arange(m + 2, dtype=Long)
        law = np.ones(1, dtype=Long) if alphabet == 2 else binomial(int(m) + 1, share, 1 - share)
        if alphabet == 2:
            t = t[-1:]
        weight = hiding[m] * law * g / (m + 1)
        lean = np.expm1(Long(epsilon0)) * t * weight
        absent = hidden[m + 1] * law
        rows.append((t, e * t * weight, t * weight, (m + 1 - t) * weight, lean, absent))
    none = np.zeros(1, dtype=Long)
    rows.append((none, none, none, none, none, hidden[:1]))
    columns = [np.concatenate(column) for column in zip(*rows, strict=True)]
    t, absent = columns[0], _double(columns[-1])
    table = Rows(t.astype(np.int64), *(_double(part) for part in columns[1:-1]))
    found = (table if rate == 1.0 else table.sampled(rate, absent)).atoms(n)
    left_out = float(hiding[hiding <= CUT].sum())
    lost = found.lost + left_out
    return replace(found, lost=lost, exact=lost == 0.0)


def k_rr(epsilon0: float, n: int, alphabet: int, rate: float = 1.0) -> Atoms:
    """Return the law of the shuffle of k-RR, k >= 3: victim 0 or 1, all others 2, sampled by rate.

    The analyst counts the answers 0 and 1. Each other gives one of them with probability r = 1/(E +
    k - 1) each; the victim gives its own with E r. Absent, its place is taken by one of the others.
    """
    if alphabet < 3:
        raise ValueError(f"alphabet is {alphabet}; it must be at least 3")
    e = np.exp(Long(epsilon0))
    r = 1 / (e + alphabet - 1)
    rest = (e + alphabet - 3) * r
    count = binomial(n - 1, 2 * r, rest)
    before = np.append(Long(0.0), count)
    count = np.append(count, Long(0.0))
    # Pr[a - 1, b] = coin(m, a) 2 (a/m) before: the victim is one of the m.
    heads, tails = 2 * e * r * before, 2 * r * before
    plain, lean = (alphabet - 2) * r * count, 2 * np.expm1(Long(epsilon0)) * r * before
    absent = 2 * r * before + rest * count
    parts = (_double(part) for part in (heads, tails, plain, lean))
    rows = Rows(np.arange(n + 1), *parts)
    return (rows if rate == 1.0 else rows.sampled(rate, _double(absent))).atoms(n)


def two_rr(epsilon0: float, n: int) -> Atoms:
    """Return the law of the shuffle of 2RR: victim 1 or 0, all others 0. Not symmetric.

    The analyst counts the ones.
    """
    truth = 1 / (1 + np.exp(-Long(epsilon0)))
    lie = 1 / (1 + np.exp(Long(epsilon0)))
    others = binomial(n - 1, lie, truth)
    one, none = np.append(Long(0.0), others), np.append(others, Long(0.0))
    p, q = truth * one + lie * none, lie * one + truth * none
    tilt = np.tanh(Long(epsilon0) / 2)
    d, s = tilt * (one - none), tilt * (one + none)
    seen = np.maximum(p, q) > CUT
    parts = (_double(part[seen]) for part in (p, q, d, s))
    return Atoms(*parts, _error(n), float(p[~seen].sum()), exact=bool(seen.all()))


def beyond(apart: float, threshold: float, n: int) -> Atoms:
    """Return the law of how many of n normal numbers exceed a threshold; all others are about 0.

    The victim's is about `apart` under P and about 0 under Q.
    """
    far, near = (Long(ndtr(-x)) for x in (threshold, threshold - apart))
    rest, kept = (Long(ndtr(x)) for x in (threshold, threshold - apart))
    others = binomial(n - 1, far, rest)
    one, none = np.append(Long(0.0), others), np.append(others, Long(0.0))
    p, q = near * one + kept * none, far * one + rest * none
    lift = near - far
    d, s = lift * (one - none), lift * (one + none)
    seen = np.maximum(p, q) > CUT
    parts = (_double(part[seen]) for part in (p, q, d, s))
    # Normal probabilities are those of doubles, and so is their difference.
    error = _error(n) * n + 1e-15 / float(lift)
    return Atoms(*parts, error, float(p[~seen].sum()), exact=bool(seen.all()))


def thinned(pair: Atoms, rate: float) -> Atoms:
    """Return the law of a sample where without the victim all is as under Q: rate P + (1 - rate) Q.

    So it is where all others hold what the victim holds under Q, as in `two_rr`.
    """
    p = rate * pair.p + (1.0 - rate) * pair.q
    error = pair.error + 4.0 * ULP
    return replace(pair, p=p, d=rate * pair.d, s=rate * pair.s, error=error)


def joined(epsilon0: float, clients: int, probability: float) -> Atoms:
    """Return the law of 2RR where each of `clients` joins by its own coin; all others hold 0.

    The number k of messages is seen. Given k, the victim is among them with rate k/clients.
    """
    weight = _double(binomial(clients, Long(probability), 1 - Long(probability)))
    nobody = np.array([max(weight[0], 1e-300)])
    parts = [Atoms(nobody, nobody, np.zeros(1), np.zeros(1), 0.0)]
    for k in np.flatnonzero(weight[1:] > CUT) + 1:
        law = thinned(two_rr(epsilon0, int(k)), k / clients)
        p, q, d, s = (weight[k] * part for part in (law.p, law.q, law.d, law.s))
        parts.append(Atoms(p, q, d, s, law.error + ULP, weight[k] * law.lost, law.exact))
    columns = ([getattr(part, name) for part in parts] for name in "pqds")
    left_out = float(weight[1:][weight[1:] <= CUT].sum())
    return Atoms(
        *(np.concatenate(column) for column in columns),
        max(part.error for part in parts) + _error(clients),
        sum(part.lost for part in parts) + left_out,
        left_out == 0.0 and all(part.exact for part in parts),
    )


def sampled(pair: Atoms, rate: float) -> Atoms:
    """Return the dominating pair of a secret uniform sample of a symmetric pair (pld.py, Sampling).

    Each atom of loss l > 0 and masses p, q becomes rate p + (1 - rate) q and q; their mirror image;
    the rest has no loss, and its mass is what had none plus (1 - rate) times the differences.
    """
    if rate == 1.0:
        return pair
    some, none = pair.d > 0.0, pair.d == 0.0
    p, q, d = pair.p[some], pair.q[some], pair.d[some]
    rest = float(pair.p[none].sum()) + (1.0 - rate) * float(d.sum())
    up = rate * p + (1.0 - rate) * q
    error = pair.error + (16.0 + len(pair.p)) * ULP
    p, q, d = (np.append(part, last) for part, last in ((up, rest), (q, rest), (rate * d, 0.0)))
    return replace(_mirrored(p, q, d, error, pair.lost), exact=pair.exact)


def _double(part: Longs) -> Array:
    return part.astype(np.float64)
