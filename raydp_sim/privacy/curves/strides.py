"""When every s-th count of a binomial may stand for s of them: a proof for tilted coin pairs.

Let R = Bin(m, 1/2), u = h (2x - m)/m with 0 <= h < 1, and phi = (1 + u)^alpha (1 - u)^(1 - alpha),
alpha > 1 real. The sum S of R(x) phi over all x is compared with s times the sum over x = r mod s.

Lemma. With F(z) the sum of R(x) phi z^x and omega = e^(2 pi i/s), their difference is the sum over
j = 1, ..., s-1 of omega^(-jr) F(omega^j) (orthogonality of characters, exact). Let A be the least
integer >= alpha. Then phi is a positive mixture of (1 + u)^A e^((y - w) u): y has the density
y^(alpha-2) e^-y / Gamma(alpha-1), which gives (1 - u)^(1 - alpha), and w that of Gamma(A - alpha),
which gives (1 + u)^(alpha - A) (w = 0 if alpha is whole).

(1) For |y - w| <= m: (1 + u)^A is a polynomial in x with positive coefficients, hence a positive
combination of falling factorials x(x-1)...(x-i+1), i <= A, and the sum of R(x) x(x-1)...(x-i+1)
zeta^x is a positive constant times zeta^i ((1 + zeta)/2)^(m-i). At zeta = e^kappa omega^j, kappa =
2 h (y - w)/m, its modulus over its value at e^kappa is at most |(1 + zeta)/(1 + |zeta|)|^(m-i) =
(1 - 2 p q (1 - cos(2 pi j/s)))^((m-i)/2), p = 1 - q = e^kappa/(1 + e^kappa), and |kappa| <= 2 gives
p q >= 0.1049. So these y, w contribute at most S times s exp(-0.1049 (m - A)(1 - cos(2 pi/s))).

(2) For |y - w| > m either y > m or w > m. As E e^(v u) = cosh(v h/m)^m, and e^-v cosh(v h/m)^m is
at most e^(m (log cosh h - 1) - (1 - h)(v - m)) for v > m, what a Gamma(a) variable v > m
contributes is at most e^(-m (h - log cosh h)) (1 - h)^-a Pr[Gamma(a) > (1 - h) m] times the largest
value of the other factors: (1 + h)^alpha for v = y, a = alpha - 1, and (1 + h)^A (1 - h)^(1-alpha)
for v = w, a = A - alpha. The probability is at most exp(-b^2/(2 (a + b))), b = (1 - h) m - a > 0,
by Chernoff's bound and r - 1 - log r >= (r - 1)^2/(2 r). Both sums contain it, one s times.

`stride` takes s > 1 only where (1) and (2) together are below e^-80 (1 + S).
"""

import math

import numpy as np

from raydp_sim.privacy.curves.binomials import Floats

# log of what a stride may leave out, relative to 1 + S.
_LEAST = -80.0


def stride(m: Floats, h: Floats, alpha: float) -> Floats:
    """Return a step for sums over x of each component: a quarter of sd where proved, else 1.

    Args:
        m: coins of each component, >= 1.
        h: tilt of each, in [0, 1).
        alpha: order, > 1.

    Example:
        >>> stride(np.array([100.0, 1e6, 1e6]), np.array([0.5, 0.5, 0.9]), 2.0).tolist()
        [1.0, 125.0, 125.0]
        >>> stride(np.array([1e4]), np.array([0.9]), 3000.0).tolist()
        [1.0]
    """
    step = np.maximum(1.0, np.floor(0.125 * np.sqrt(m)))
    whole = math.ceil(alpha)
    aliased = np.log(step) - 0.1049 * (m - whole) * (1.0 - np.cos(2.0 * math.pi / step))
    left = np.maximum(
        _beyond(m, h, alpha - 1.0) + alpha * np.log1p(h),
        _beyond(m, h, whole - alpha) + whole * np.log1p(h) - (alpha - 1.0) * np.log1p(-h),
    )
    safe = np.maximum(aliased, left + np.log1p(step)) + math.log(3.0) <= _LEAST
    return np.where(safe, step, 1.0)


def _beyond(m: Floats, h: Floats, a: float) -> Floats:
    """Return the logarithm of step (2)'s bound for a Gamma(a) variable; 0 and more says nothing."""
    if a == 0.0:
        return np.full_like(m, -math.inf)
    b = np.maximum((1.0 - h) * m - a, 0.0)
    fall = h - np.log(np.cosh(h))
    return -m * fall - a * np.log1p(-h) - b * b / (2.0 * (a + b))
