"""The oracle itself gives the published small exact values."""

import pytest

from tests.privacy import enumeration as oracle


@pytest.mark.parametrize(
    ("symbols", "n", "second", "fifth"),
    [
        (2, 2, 0.550555174725, 0.843973988305),
        (2, 3, 0.422473374607, 0.768048396744),
        (2, 5, 0.269663109197, 0.627147902914),
        (2, 20, 0.059076052718, 0.167240818834),
        (2, 100, 0.0110417484944, 0.0282373727536),
        (3, 2, 0.445826560417, 0.740467560304),
        (3, 4, 0.277257869195, 0.54798246992),
        (4, 4, 0.226615476206, 0.455290172332),
    ],
)
def test_shuffled_randomized_response(symbols, n, second, fifth):
    pairs = list(oracle.shuffle_pairs(oracle.randomized_response(1.0, symbols), n))
    assert oracle.worst(pairs, oracle.renyi, 2) == pytest.approx(second, rel=1e-11)
    assert oracle.worst(pairs, oracle.renyi, 5) == pytest.approx(fifth, rel=1e-11)


@pytest.mark.parametrize(
    ("epsilon0", "symbols", "n", "k", "exact"),
    [
        (0.5, 2, 4, 2, 0.0314080537502),
        (0.5, 2, 5, 3, 0.0307013068736),
        (0.5, 3, 4, 2, 0.0268553021488),
        (2.0, 2, 4, 2, 0.52505328257),
        (2.0, 3, 5, 3, 0.66788871551),
    ],
)
def test_subsampled_shuffle(epsilon0, symbols, n, k, exact):
    pairs = oracle.subsampled_pairs(oracle.randomized_response(epsilon0, symbols), n, k)
    assert oracle.worst(pairs, oracle.renyi, 2) == pytest.approx(exact, rel=1e-11)


@pytest.mark.parametrize(
    ("k", "exact"),
    [
        (1, (0.230677684502, 0.149645520612, 0.062976714206)),
        (2, (0.115338842251, 0.0595203490087, 0.0230990123963)),
        (4, (0.0576694211255, 0.021287778621, 0.00492015718741)),
    ],
)
def test_ternary_divergence(k, exact):
    channel = oracle.randomized_response(0.5, 3)
    found = tuple(oracle.ternary(channel, k, j) for j in (2, 3, 5))
    assert found == pytest.approx(exact, rel=1e-11)


@pytest.mark.parametrize(
    ("shape", "second", "delta"),
    [
        ((3, 2, 2, 1), 0.0597118019071, 0.0441486340516),
        ((2, 3, 2, 2), 0.131388048139, 0.0915652554904),
    ],
)
def test_two_stage_round(shape, second, delta):
    pairs = list(oracle.two_stage_pairs(oracle.randomized_response(1.0), *shape))
    assert oracle.worst(pairs, oracle.renyi, 2) == pytest.approx(second, rel=1e-11)
    assert oracle.worst(pairs, oracle.hockey_stick, 0.2) == pytest.approx(delta, rel=1e-11)


def test_powers_in_logs_keep_the_worst_pair():
    pairs = oracle.shuffle_pairs(oracle.randomized_response(4.0), 20)
    assert oracle.worst(pairs, oracle.renyi, 12) == pytest.approx(3.96700013106, rel=1e-11)


@pytest.mark.parametrize("seed", range(5))
def test_random_channels_have_exactly_their_loss(seed):
    channel = oracle.random_channel(seed, 1.3, 3, 4)
    assert oracle.loss(channel) == pytest.approx(1.3, rel=1e-9)
    assert channel.sum(axis=1) == pytest.approx(1.0)
