"""What is special about split-and-mix: a guarantee of the whole batch, and noise that adds up."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy import stats

from raydp_sim.actors.conductor import Conductor
from raydp_sim.actors.crew import Crew
from raydp_sim.errors import InputError
from raydp_sim.mechanisms import make
from raydp_sim.mechanisms.parts.polya import PolyaNoise
from raydp_sim.privacy.curves.shares import log_distance
from raydp_sim.privacy.events import LocalReport, ShuffledRelease
from raydp_sim.privacy.ledger.ledger import Ledger
from raydp_sim.random import Stream
from raydp_sim.run import run
from raydp_sim.scenario import bound_mechanism, settled
from raydp_sim.stream.batches import BUCKETS, Shuffled
from tests.actors.scrambled import Scrambled
from tests.conftest import assert_identical, scenario, with_placement
from tests.privacy.test_shares import mixed_law, report_law

from .support import ALPHA, SERVER, folded, reports

NUMBERS = {"kind": "gaussian", "dimension": 1, "clip": 1.0}


def polya_law(r, a, most):
    """P(0), P(1), ... of Polya(r, a), by its recursion."""
    law = np.empty(most)
    law[0] = (1 - a) ** r
    for j in range(1, most):
        law[j] = law[j - 1] * a * (j - 1 + r) / j
    return law


def noise_law(noise, most):
    """P(-most), ..., P(most) of one client's noise, and a little beyond left out."""
    one = polya_law(1 / noise.clients, noise.a, most + 1)
    return np.convolve(one, one[::-1])


# The noise.


@pytest.mark.parametrize("clients", [1, 3, 20])
def test_the_clients_noise_adds_up_to_discrete_laplace_noise(clients):
    noise = PolyaNoise(clients, 2.5)
    most = 200
    total = np.ones(1)
    for _ in range(clients):
        total = np.convolve(total, noise_law(noise, most))
    centre = len(total) // 2
    a, j = math.exp(-1 / 2.5), np.arange(-50, 51)
    laplace = (1 - a) / (1 + a) * a ** np.abs(j)
    assert total[centre - 50 : centre + 51] == pytest.approx(laplace, rel=1e-9)


@pytest.mark.parametrize(("clients", "scale"), [(1, 3.0), (4, 0.5), (50, 20.0)])
def test_draws_follow_the_law(clients, scale):
    """Chi-square of 200,000 draws; chance of a false alarm 1e-8 each."""
    noise, count, most = PolyaNoise(clients, scale), 200_000, 400
    drawn = noise.draw(Stream(3).at("noise").clients(np.arange(count)))
    law = noise_law(noise, most)
    seen = np.bincount(np.clip(drawn, -most, most) + most, minlength=2 * most + 1)
    large = law * count >= 20
    assert large.sum() > 4
    expected = np.append(law[large], 1 - law[large].sum()) * count
    counted = np.append(seen[large], seen[~large].sum())
    statistic = ((counted - expected) ** 2 / expected).sum()
    assert stats.chi2.sf(statistic, large.sum()) > ALPHA
    j = np.arange(-most, most + 1)
    assert noise.variance == pytest.approx((law * j**2).sum(), rel=1e-6)


def test_the_chance_of_leaving_the_modulus_is_stated_from_above():
    noise = PolyaNoise(3, 4.0)
    law = np.ones(1)
    for _ in range(5):
        law = np.convolve(law, noise_law(noise, 300))
    j = np.abs(np.arange(len(law)) - len(law) // 2)
    for most in (0, 5, 40):
        beyond = law[j > most].sum()
        assert 0.0 < beyond <= noise.tail(5, most) * (1 + 1e-9)


@pytest.mark.parametrize("clients", [10, 1000, 10**6])
def test_the_modulus_holds_the_sum_and_is_no_larger_than_needed(clients):
    made = make("split-and-mix", epsilon=0.5, delta=1e-6, radius=1.0, clients=clients)
    largest = clients * made.top

    def overflow(width):
        room = ((1 << width) - 1 - largest) // 2
        return made.noise.tail(clients, room) if room >= 0 else 1.0

    assert overflow(made.width) <= 2.0**-40 < overflow(made.width - 1)
    assert made.bits == made.messages_per_report * made.width


# The guarantee.


def encoded_law(value, noise, q):
    """The law of a whole number plus noise modulo q; without noise, if there is none."""
    law, most = np.zeros(q), 400
    chances = np.eye(2 * most + 1)[most] if noise is None else noise_law(noise, most)
    np.add.at(law, (np.arange(-most, most + 1) + value) % q, chances)
    return law


def view(numbers, noise, messages, q):
    """The exact law of all that the server sees of some clients with whole numbers."""
    shares = [report_law(value, messages, q) for value in range(q)]
    laws = []
    for number in numbers:
        law = dict.fromkeys(itertools.chain(*shares), 0.0)
        for value, chance in enumerate(encoded_law(number, noise, q)):
            for counts, probability in shares[value].items():
                law[counts] += chance * probability
        laws.append(law)
    return mixed_law(laws)


@pytest.mark.parametrize(("n", "messages", "q"), [(2, 6, 2), (3, 4, 4), (3, 5, 4)])
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_a_tiny_protocol_is_as_private_as_proved(n, messages, q, epsilon):
    """Numbers 0 or 1, noise, shares and mixing, enumerated; without noise it would be noticed."""
    bound = (1 + math.exp(epsilon)) * math.exp(log_distance(n, messages, math.log(q)))
    assert bound < 0.95
    for noise in (PolyaNoise(n, 1 / epsilon), None):
        views = [view([1] * k + [0] * (n - k), noise, messages, q) for k in range(n + 1)]
        delta = 0.0
        for pair in itertools.pairwise(views):
            for one, other in (pair, pair[::-1]):
                excess = (one[key] - math.exp(epsilon) * other[key] for key in {*one, *other})
                delta = max(delta, sum(max(0.0, part) for part in excess))
        assert (delta <= bound) == (noise is not None)


def test_without_the_mixing_a_report_is_the_number_itself():
    made = make("split-and-mix", epsilon=1.0, delta=1e-6, radius=1.0, clients=10**4)
    assert made.guarantee == "shuffled-only" and made.epsilon_of_report is None
    values = np.linspace(-1, 1, 9)[:, None]
    alone = [made.wire.total(folded(made, report[None])) for report in reports(made, values)]
    assert np.argsort(alone).tolist() == list(range(9))


def test_all_shares_but_one_do_not_depend_on_the_value():
    made = make("split-and-mix", epsilon=1.0, delta=1e-6, radius=1.0, clients=10**4)
    one, other = (reports(made, np.full((50, 1), value)) for value in (-1.0, 1.0))
    assert np.array_equal(one[:, :-1], other[:, :-1])
    moved = (other[:, -1].astype(int) - one[:, -1].astype(int)) % (1 << made.width)
    assert (moved == made.top).all()


def test_the_declared_delta_is_proved_with_as_few_shares_as_possible():
    for delta, clients in ((1e-5, 100), (1e-10, 100), (1e-5, 10**5)):
        made = make("split-and-mix", epsilon=1.0, delta=delta, radius=1.0, clients=clients)
        shares = made.messages_per_report
        assert made.proved_delta(shares) <= delta < made.proved_delta(shares - 1)
        assert made.event() == ShuffledRelease(1.0, delta, clients)


def test_the_error_of_the_sum_is_that_of_a_trusted_server():
    """2 / epsilon^2 in units of the range, whatever n, plus at most 1/32 of it for rounding."""
    for clients in (100, 10**4, 10**6):
        made = make("split-and-mix", epsilon=0.5, delta=1e-6, radius=0.5, clients=clients)
        assert 0.99 * 2 / 0.25 <= clients * made.worst_mse() <= 33 / 32 * 2 / 0.25


def test_a_larger_batch_only_adds_noise():
    few, many = (
        make("split-and-mix", epsilon=1.0, delta=1e-6, radius=1.0, clients=900, noise_clients=h)
        for h in (100, 900)
    )
    assert few.top == many.top
    assert few.worst_mse() > 8.0 * many.worst_mse()


def test_a_lost_share_is_noticed():
    made = make("split-and-mix", epsilon=1.0, delta=1e-4, radius=1.0, clients=30)
    payload = reports(made, np.zeros((30, 1))).reshape(-1)
    counts = made.fold(made.zero(), np.zeros(len(payload) - 1, int), payload[1:])
    with pytest.raises(ValueError, match="not whole reports"):
        made.decode(counts, SERVER)


# In a scenario.


def summing(clients=300, rounds=3, mechanism=(), **sections):
    base = {"kind": "split-and-mix", "radius": 1.0, "epsilon": 0.5, "delta": 1e-8}
    return scenario(
        rounds=rounds,
        population={"clients": clients, "data": NUMBERS},
        mechanism={**base, **dict(mechanism)},
        **{"shuffle": {"min_batch": 200}, **sections},
    )


def test_the_noise_is_calibrated_to_the_honest_part_of_the_smallest_batch():
    assert bound_mechanism(summing()).noise_clients == 200
    some = summing(privacy={"honest_fraction": 0.7})
    assert bound_mechanism(some).event() == ShuffledRelease(0.5, 1e-8, 140)
    assert bound_mechanism(summing(mechanism={"noise_clients": 150})).honest == 150
    assert bound_mechanism(settled(summing())) == bound_mechanism(summing())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mechanism": {"noise_clients": 201}}, ("noise_clients is 201", "only 200", "min_batch")),
        (
            {"mechanism": {"noise_clients": 200}, "privacy": {"honest_fraction": 0.99}},
            ("noise_clients is 200", "only 198"),
        ),
        ({"shuffle": {"min_batch": 301}}, ("shuffle.min_batch is 301", "at most 300")),
        ({"mechanism": {"shares": 5}}, ("mechanism.shares is 5", "needs 1", "raise it")),
        ({"mechanism": {"delta": 1e-14}}, ("mechanism.delta is 1e-14", "draws blur", "raise it")),
        ({"mechanism": {"delta": 0.01}}, ("privacy.delta is 1e-06", "3 releases")),
        ({"mechanism": {"epsilon": 200.0}}, ("mechanism.delta is 1e-08", "epsilon 200")),
        ({"mechanism": {"steps": 2**30}}, ("mechanism.delta is 1e-08", "lower mechanism.steps")),
        (
            {
                "mechanism": {"steps": 2**31 - 1, "delta": 0.01},
                "clients": 2**32 - 1,
                "privacy": {"delta": 0.1},
            },
            ("mechanism.steps", "62 bits", "lower it"),
        ),
        ({"mechanism": {"epsilon_local": 1.0}}, ("no local guarantee; give epsilon",)),
        ({"trust": "local"}, ("trust is 'local'", "needs trust: shuffle")),
    ],
)
def test_what_cannot_be_proved_is_refused(change, words):
    with pytest.raises(InputError) as refusal:
        summing(**change)
    for word in words:
        assert word in str(refusal.value)


def test_a_run_spends_by_basic_composition_and_says_what_it_rests_on(tmp_path):
    target = {"epsilon": None, "delta": None, "target": {"epsilon": 3.0, "delta": 1e-7}}
    result = run(summing(mechanism=target), out=tmp_path / "run")
    privacy = result.summary["privacy"]
    assert privacy["epsilon"] == pytest.approx(3.0) and privacy["delta"] == pytest.approx(1e-7)
    assert privacy["epsilon_local"] is None and privacy["bound"] == "basic-composition"
    assert "shuffler is honest" in privacy["assumption"]
    assert "at least 200 clients" in privacy["assumption"]
    assert result.metrics["epsilon_local"].to_pylist() == [None] * 3
    assert result.metrics["epsilon"].to_pylist() == pytest.approx([1.0, 2.0, 3.0])
    # 300 clients, each with a 200th of the noise: 1.5 * 2 (2/300)^2 is 1.3e-4. Beyond 25 times as
    # much with probability below 1e-2, were the seed not fixed.
    assert 0.0 < result.summary["metrics"]["squared_error_cohort"] < 25 * 1.4e-4


def test_too_small_a_batch_is_withheld_and_costs_nothing(tmp_path):
    coins = {"kind": "bernoulli", "probability": 2 / 3}
    population = {"clients": 300, "data": NUMBERS, "availability": coins}
    base = summing(rounds=12).document()
    result = run({**base, "population": population}, out=tmp_path / "run")
    sizes = result.metrics["batch_size"].to_pylist()
    assert sizes and min(sizes) >= 200 and result.summary["metrics"]["withheld"] > 0
    assert result.summary["privacy"]["epsilon"] <= 0.5 * len(sizes)


def test_placement_changes_nothing(tmp_path):
    base = summing()
    run(base, out=tmp_path / "one")
    for name, shufflers, share in (("two", 2, 7), ("five", 5, 300)):
        run(with_placement(base, shufflers, clients_per_actor=share), out=tmp_path / name)
        assert_identical(tmp_path / "one", tmp_path / name)


def test_nothing_that_reaches_the_aggregator_tells_which_share_a_message_is(tmp_path):
    base, received = with_placement(summing(rounds=2), 2, clients_per_actor=100), []
    backend = Scrambled(1)
    crew = Crew(base, backend, tmp_path)
    call = backend.call

    def recording(actor, method, *args, returns=1):
        if actor is crew.lead and method in ("fold", "step"):
            received.extend(args[1:] if method == "fold" else args[5:])
        return call(actor, method, *args, returns=returns)

    backend.call = recording
    crew.begin(0, 0, None)
    (tmp_path / "ledger").mkdir()
    list(Conductor(crew).play(2))
    assert received
    for chunk in (getattr(arg, "value", arg) for arg in received):
        assert type(chunk) is Shuffled and not chunk.index.any()
        assert {field.name for field in dataclasses.fields(chunk)} == {
            "release",
            "groups",
            "lengths",
            "payload",
        }
        # One logical shuffler: the groups are its buckets, whose sizes depend on no index.
        assert chunk.groups.max() < BUCKETS and chunk.payload.ndim == 1


def test_a_ledger_of_shuffled_releases_adds_up_and_mixes_with_nothing_else():
    ledger = Ledger(clients=3)
    ledger.charge(ShuffledRelease(0.5, 1e-8, 2), range(3))
    ledger.charge(ShuffledRelease(0.25, 1e-9, 3), np.array([1], np.uint32))
    found = ledger.guarantee()
    assert (found.epsilon, found.median) == (0.75, 0.5)
    assert found.delta == pytest.approx(1.1e-8) and "at least 3 clients" in found.assumption
    ledger.charge(LocalReport(1.0), range(1))
    with pytest.raises(ValueError, match="no common view"):
        ledger.guarantee()
