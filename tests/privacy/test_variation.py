"""The mechanism-specific bounds against exact laws: all neighbours, both directions."""

import itertools
import math
from functools import cache

import numpy as np
import pytest

from raydp_sim.privacy.curves.clones import clones_epsilon
from raydp_sim.privacy.curves.variation import (
    BLANKETS,
    blanket_of,
    hadamard_blocks,
    stronger_clones_pair,
    variation_delta,
    variation_epsilon,
    variation_pair,
    variation_rdp,
)
from raydp_sim.privacy.errors import Unsupported
from tests.privacy.enumeration import (
    Array,
    hockey_stick,
    loss,
    randomized_response,
    renyi,
    shuffle_pairs,
)

LOCAL = [0.1, 0.5, 1.0, 2.0, 4.0]
ORDERS = [1.5, 2.0, 5.0, 30.0]
SHARES = [0.0, 0.1, 0.3, 0.6, 0.9]  # of epsilon0


def hadamard_channel(epsilon0: float, alphabet: int) -> Array:
    blocks = hadamard_blocks(epsilon0, alphabet)
    size = 1 << math.ceil(math.log2(alphabet / blocks + 1))
    matrix = np.array([[1.0]])
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    channel = np.ones((alphabet, blocks * size))
    for x in range(alphabet):
        start = (x % blocks) * size
        row = channel[x, start : start + size]
        row[matrix[:, x // blocks + 1] > 0] = math.exp(epsilon0)
    return channel / channel.sum(axis=1, keepdims=True)


def rbin_channel(epsilon0: float, bits: int) -> Array:
    rows = []
    for block in itertools.product([0, 1], repeat=bits):
        wrong = 1.0 / (math.exp(epsilon0) + 1.0)
        one = [1.0 - wrong if b else wrong for b in block]
        rows.append([x / bits for b in one for x in (1.0 - b, b)])
    return np.array(rows)


def laplace_channel(epsilon0: float, cells: int, inputs: int) -> Array:
    edges = np.linspace(-0.25, 1.25, cells - 1)
    rows = []
    for x in np.linspace(0.0, 1.0, inputs):
        z = epsilon0 * (edges - x)
        cdf = np.where(z < 0, 0.5 * np.exp(np.minimum(z, 0)), 1 - 0.5 * np.exp(-np.maximum(z, 0)))
        rows.append(np.diff(np.concatenate([[0.0], cdf, [1.0]])))
    return np.array(rows)


CASES = [
    *[("2rr", None, n) for n in range(1, 7)],
    *[("krr", k, n) for k in (2, 3, 4) for n in range(1, 6)],
    ("krr", 3, 6),
    *[("hadamard", 2, n) for n in (1, 2, 3, 5)],
    *[("hadamard", 3, n) for n in (1, 2, 3, 4)],
    *[("hadamard", 4, n) for n in (1, 2)],
    *[("rbin", 4, n) for n in range(1, 6)],
    *[("rbin", 6, n) for n in (1, 2, 3)],
    *[("laplace", None, n) for n in range(1, 5)],
]


@cache
def channel_of(name: str, alphabet: int | None, epsilon0: float, n: int) -> Array:
    if name in ("2rr", "krr"):
        return randomized_response(epsilon0, alphabet or 2)
    if name == "hadamard":
        return hadamard_channel(epsilon0, alphabet or 0)
    if name == "rbin":
        return rbin_channel(epsilon0, (alphabet or 0) // 2)
    return laplace_channel(epsilon0, {1: 40, 2: 10, 3: 7, 4: 6}[n], 3 if n > 1 else 7)


@pytest.mark.parametrize(("name", "alphabet", "n"), CASES)
@pytest.mark.parametrize("epsilon0", LOCAL)
def test_the_bound_is_never_below_the_exact_value(name, alphabet, n, epsilon0):
    channel = channel_of(name, alphabet, epsilon0, n)
    assert loss(channel) <= epsilon0 + 1e-9
    if channel.shape[1] * math.log(n + 1) > math.log(2e5):
        pytest.skip("too many histograms to enumerate")
    pairs = list(shuffle_pairs(channel, n))
    pair = variation_pair(name, epsilon0, n, alphabet)
    strong = stronger_clones_pair(name, epsilon0, n)
    for share in SHARES:
        epsilon = share * epsilon0
        exact = max(hockey_stick(p, epsilon) for p in pairs)
        assert pair.delta(epsilon) >= exact - 1e-12
        assert strong.delta(epsilon) >= exact - 1e-12
        assert variation_delta(name, epsilon0, n, epsilon, alphabet) >= exact - 1e-12
    for alpha in ORDERS:
        exact = max(renyi(p, alpha) for p in pairs)
        assert pair.rdp(alpha) >= exact - 1e-12
        assert strong.rdp(alpha) >= exact - 1e-12
        assert variation_rdp(alpha, name, epsilon0, n, alphabet) >= exact - 1e-12


def test_two_symbols_are_binary_randomized_response():
    assert variation_epsilon("krr", 1.5, 500, 1e-6, 2) == variation_epsilon("2rr", 1.5, 500, 1e-6)
    assert blanket_of("krr", 1.5, 2).mass == pytest.approx(blanket_of("2rr", 1.5).mass, rel=1e-14)


def test_the_binary_bound_is_within_a_third_of_the_exact_delta():
    pairs = list(shuffle_pairs(randomized_response(1.0), 12))
    exact = max(hockey_stick(p, 0.2) for p in pairs)
    assert exact <= variation_delta("2rr", 1.0, 12, 0.2) <= 1.34 * exact


@pytest.mark.parametrize(
    ("name", "alphabet", "epsilon0", "factor"),
    [("2rr", None, 3.0, 1.35), ("krr", 100, 3.0, 3.5), ("hadamard", 100, 3.0, 2.2)],
)
def test_knowing_the_randomizer_pays(name, alphabet, epsilon0, factor):
    known = variation_epsilon(name, epsilon0, 10**6, 1e-6, alphabet)
    assert clones_epsilon(epsilon0, 10**6, 1e-6) > factor * known


@pytest.mark.parametrize("name", sorted(BLANKETS))
def test_the_bound_falls_with_n_and_stays_below_the_generic_one(name):
    alphabet = 10 if name in ("krr", "hadamard", "rbin") else None
    values = [variation_epsilon(name, 2.0, n, 1e-8, alphabet) for n in (30, 300, 3000, 30_000)]
    assert values == sorted(values, reverse=True)
    for n, value in zip((30, 300, 3000, 30_000), values, strict=True):
        assert value <= clones_epsilon(2.0, n, 1e-8) * (1 + 1e-9)


@pytest.mark.parametrize("name", [None, "privunit", "gaussian", "subset"])
def test_other_randomizers_are_refused(name):
    with pytest.raises(Unsupported, match="not proved"):
        variation_epsilon(name, 1.0, 100, 1e-6)
    with pytest.raises(Unsupported, match="not proved"):
        stronger_clones_pair(name, 1.0, 100)


def test_a_blanket_can_be_too_thin_for_stronger_clones():
    # Subset selection, 2 of 3: why being epsilon0-LDP is not enough for the proof.
    p = math.exp(2.0)
    channel = np.array([[p, p, 1.0], [1.0, p, p], [p, 1.0, p]]) / (2 * p + 1)
    assert loss(channel) == pytest.approx(2.0)
    assert channel.min(axis=0).sum() < 2 / (p + 1)


@pytest.mark.parametrize(
    ("name", "alphabet"),
    [("krr", None), ("krr", 1), ("2rr", 3), ("hadamard", None), ("rbin", 5), ("laplace", 2)],
)
def test_wrong_alphabets_are_refused(name, alphabet):
    with pytest.raises(ValueError, match="alphabet"):
        variation_epsilon(name, 1.0, 100, 1e-6, alphabet)


def test_no_local_loss_is_no_loss():
    for name in BLANKETS:
        alphabet = 4 if name in ("krr", "hadamard") else None
        assert variation_epsilon(name, 0.0, 100, 1e-6, alphabet) == 0.0
        assert variation_rdp(2.0, name, 0.0, 100, alphabet) == 0.0
