"""Personal learning: the printed index, psi's floor, accountants, what is charged, directions."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.parts.mms import (
    SEED_000,
    SEED_003,
    mms_parameters,
    safe_constant,
    smooth_bound,
    smooth_step,
)
from raydp_sim.metrics import streams
from raydp_sim.models.linear import Linear
from raydp_sim.privacy.composition.conversion import linear_rdp_simple
from raydp_sim.privacy.curves.gaussian import gaussian_epsilon
from raydp_sim.privacy.ledger.views import view_of
from raydp_sim.run.play import prepare, reopen
from raydp_sim.scenario import bound_mechanism, parse
from raydp_sim.tasks.learning import local, own_tests
from raydp_sim.tasks.learning.adaptive_clip import AdaptiveClip

STEPS = {"kind": "gaussian-steps", "steps": 10, "radius": 0.5, "scalar_radius": 0.05}
CLIENTS = {
    "clients": 20,
    "data": {
        "kind": "synthetic-digits",
        "n": 2500,
        "side": 8,
        "points": 60,
        "personal_test": 40,
        "partition": {"kind": "classes", "per_client": 3},
        "test": 100,
    },
}


def document(task: dict[str, Any], mechanism: dict[str, Any], **changed: Any) -> dict[str, Any]:
    known = {"name": "personal", "seed": 5, "trust": "local", "population": CLIENTS}
    placement = {"backend": "inline", "checkpoint_seconds": 0}
    privacy = {"delta": 1e-4}
    rest = {"task": task, "mechanism": mechanism, "placement": placement, "privacy": privacy}
    return {**known, **rest, **changed}


def played(folder: Path, given: dict[str, Any]) -> Path:
    for _ in prepare(parse(given), out=folder).releases():
        pass
    return folder


def last(folder: Path, stream: str) -> dict[str, Any]:
    rows = streams.read(folder / "metrics", stream).to_pylist()
    assert rows, stream
    return rows[-1]


def common(folder: Path) -> np.ndarray:
    with np.load(folder / "model" / "last.npz") as found:
        return np.concatenate([found["weight"].ravel(), found["bias"]])


def test_with_one_step_a_round_the_common_model_moves(tmp_path: Path) -> None:
    # The source averages copies from before the last step: with one step none would ever move.
    quiet = {**STEPS, "steps": 1, "sigma": 1e-6, "scalar_sigma": 1e-6}
    task = {"kind": "adaped", "rounds": 3, "step_sizes": [0.5, 0.5, 0.05]}
    found = common(played(tmp_path / "run", document(task, quiet)))
    assert 1e-3 < np.linalg.norm(found) <= 3 * 0.5 * 0.5 + 1e-3


def test_psi_never_falls_below_its_least_value_and_the_floor_is_counted(tmp_path: Path) -> None:
    loud = {**STEPS, "sigma": 1.0, "scalar_sigma": 5.0}
    task = {"kind": "adaped", "rounds": 2, "psi": 0.6, "psi_least": 0.5}
    folder = played(tmp_path / "run", document({**task, "step_sizes": [0.5, 0.1, 0.05]}, loud))
    psis = [row["psi"] for row in streams.read(folder / "metrics", "training").to_pylist()]
    assert len(psis) == 2 and min(psis) >= 0.5
    assert 0.1 < last(folder, "training")["psi_at_least"] < 0.9


def test_the_ledger_charges_every_noisy_step_and_other_accountants_are_beside_it(
    tmp_path: Path,
) -> None:
    noise = {**STEPS, "sigma": 5.0, "scalar_sigma": 0.5}
    given = document({"kind": "adaped", "rounds": 4}, noise)
    folder = played(tmp_path / "run", given)
    cost = 4 * 10 * (0.5**2 / 5.0**2 + 0.05**2 / 0.5**2)
    exact = gaussian_epsilon(1e-4, 1.0 / math.sqrt(4 * cost))
    spent = last(folder, "releases")
    assert exact <= spent["epsilon"] <= exact * 1.001 and spent["bound"] == "pld-noise"
    beside = last(folder, "accountants")
    assert beside["epsilon_local_proved"] > spent["epsilon"]
    for name in ("seed", "aggregate"):
        assert beside[f"epsilon_{name}_not_proved"] < spent["epsilon"]
    assert "the server included" in view_of(bound_mechanism(parse(given)).release())


def test_only_participations_are_charged_where_clients_are_sampled(tmp_path: Path) -> None:
    noise = {**STEPS, "sigma": 5.0, "scalar_sigma": 0.5}
    sampled = {"participation": {"kind": "uniform", "sampled": 5}}
    folder = played(tmp_path / "run", document({"kind": "adaped", "rounds": 4}, noise, **sampled))
    spent = last(folder, "releases")
    assert spent["epsilon_median"] < spent["epsilon"]
    assert spent["epsilon"] < last(folder, "accountants")["epsilon_local_proved"]


def test_a_target_is_proved_for_all_steps_of_all_rounds() -> None:
    given = {**STEPS, "target": {"epsilon": 8.0, "delta": 1e-4}}
    scenario = parse(document({"kind": "adaped", "rounds": 9}, given))
    noise = bound_mechanism(scenario).release().noise_multiplier
    assert 7.99 < gaussian_epsilon(1e-4, noise / 3.0) <= 8.0


@pytest.mark.parametrize(
    ("task", "mechanism", "named"),
    [
        ("adaped", {"kind": "laplace", "radius": 1.0, "epsilon_local": 1.0}, "mechanism.kind"),
        ("adaped", {**STEPS, "scalar_radius": None, "sigma": 1.0}, "mechanism.scalar_radius"),
        ("dp-fedavg", {**STEPS, "sigma": 1.0, "scalar_sigma": 1.0}, "mechanism.scalar_radius"),
        ("fedavg", {"kind": "gaussian-steps", "radius": 1.0, "sigma": 1.0}, "on_out_of_range"),
        (
            "local-only",
            {"kind": "gaussian-steps", "radius": 1.0, "sigma": 1.0},
            "mechanism.kind",
        ),
    ],
)
def test_a_mechanism_that_does_not_fit_is_refused(
    task: str, mechanism: dict[str, Any], named: str
) -> None:
    given = {name: value for name, value in mechanism.items() if value is not None}
    with pytest.raises(InputError, match=named):
        parse(document({"kind": task, "rounds": 2}, given))


def test_personal_models_are_written_and_survive_an_interruption(tmp_path: Path) -> None:
    noise = {**STEPS, "sigma": 5.0, "scalar_sigma": 0.5}
    given = document({"kind": "adaped", "rounds": 3, "keep_personal": True, "batch": 20}, noise)
    whole = played(tmp_path / "whole", given)
    rows = prepare(parse(given), out=tmp_path / "cut").releases()
    next(rows)
    rows.close()
    for _ in reopen(tmp_path / "cut").releases():
        pass
    for name in ("personal", "last"):
        one, other = ((f / "model" / f"{name}.npz").read_bytes() for f in (whole, tmp_path / "cut"))
        assert one == other
    with np.load(whole / "model" / "personal.npz") as found:
        assert found["weight"].shape == (20, 10, 64) and found["bias"].shape == (20, 10)
        spread = np.ptp(found["weight"], axis=0).max()
    assert spread > 0.01  # every client has its own


def test_personal_models_beat_a_noisy_common_one_and_alone_is_shown(tmp_path: Path) -> None:
    aggregate = {"epsilon": 3.35, "delta": 1e-4}
    task = {"kind": "adaped", "rounds": 10, "psi_least": 0.5, "evaluate_every": 10}
    tied = played(tmp_path / "tied", document(task, {**STEPS, "aggregate": aggregate}))
    plain = {key: value for key, value in STEPS.items() if key != "scalar_radius"}
    other = {"kind": "dp-fedavg", "rounds": 10, "evaluate_every": 10}
    one = played(tmp_path / "one", document(other, {**plain, "aggregate": aggregate}))
    personal, shared = last(tied, "personal"), last(one, "personal")
    assert personal["clients"] == shared["clients"] == 20
    assert personal["personal_accuracy"] > shared["starting_accuracy"] + 0.3
    assert personal["alone_accuracy"] > 0.85 and 0.0 < personal["alone_accuracy_sd"] < 0.2
    assert last(tied, "accountants")["epsilon_aggregate_not_proved"] == pytest.approx(3.35)
    # Who trains alone in the same way ends with the same models.
    alone = {"kind": "local-only", "rounds": 10, "evaluate_every": 10}
    by_itself = document(alone, {"kind": "2rr", "epsilon_local": 1e-6}, trust="shuffle")
    found = last(played(tmp_path / "alone", by_itself), "personal")
    assert found["alone_accuracy"] == personal["alone_accuracy"]


def test_one_noisy_mean_is_better_than_noise_in_every_step_at_a_proved_epsilon(
    tmp_path: Path,
) -> None:
    central = {"kind": "central-gaussian", "radius": 0.5, "on_out_of_range": "clip"}
    target = {"target": {"epsilon": 13.16, "delta": 1e-4}}
    task = {"kind": "fedavg", "rounds": 10, "local_step_size": 0.5}
    given = document(task, {**central, **target}, trust="central")
    folder = played(tmp_path / "run", given)
    assert 13.15 < last(folder, "releases")["epsilon"] <= 13.16
    plain = {key: value for key, value in STEPS.items() if key != "scalar_radius"}
    steps = document({"kind": "dp-fedavg", "rounds": 10}, {**plain, **target})
    other = played(tmp_path / "steps", steps)
    assert 13.15 < last(other, "releases")["epsilon"] <= 13.16
    better, worse = (last(each, "learning")["test_accuracy"] for each in (folder, other))
    assert better > worse + 0.1


def test_a_proximal_term_keeps_updates_short(tmp_path: Path) -> None:
    central = {"kind": "central-gaussian", "radius": 9.0, "epsilon": 1.0, "delta": 1e-6}
    norms = []
    for weight in (0.0, 1.0):
        task = {"kind": "fedavg", "rounds": 1, "local_step_size": 0.5, "proximal": weight}
        given = document(task, {**central, "on_out_of_range": "clip"}, trust="central")
        norms.append(last(played(tmp_path / f"{weight}", given), "training")["update_norm"])
    assert norms[1] < 0.8 * norms[0]


def test_adaptive_clipping_finds_the_median_norm_at_the_mechanism_s_own_cost(
    tmp_path: Path,
) -> None:
    task = {"kind": "fedavg", "rounds": 25, "steps": 1, "local_step_size": 1e-3}
    central = {"kind": "central-gaussian", "radius": 1.0, "epsilon": 50.0, "delta": 1e-6}
    results = {}
    for name, adaptive in (("fixed", None), ("adaptive", {"rate": 1.0, "share": 0.5})):
        own = {**task, **({} if adaptive is None else {"adaptive_clip": adaptive})}
        given = document(own, {**central, "on_out_of_range": "clip"}, trust="central")
        folder = played(tmp_path / name, given)
        results[name] = last(folder, "releases")["epsilon"], last(folder, "training")
    assert results["fixed"][0] == pytest.approx(results["adaptive"][0], rel=1e-9)
    # Norms are near 1e-3 and the first bound is 1; with so little noise it is led to them, and
    # then goes up and down by e^(rate/2) at most, since all updates are about equally long.
    fixed, adaptive = results["fixed"][1], results["adaptive"][1]
    assert fixed["fraction_clipped"] == 0.0 and fixed["next_clip"] == 1.0
    assert 0.5 < adaptive["next_clip"] / adaptive["update_norm"] < 2.0


def test_an_update_and_its_bit_stay_in_the_ball_and_come_back() -> None:
    rule, updates = AdaptiveClip(share=0.2), np.array([[3.0, 4.0], [0.3, 0.4]], np.float32)
    packed = rule.packed(updates, clip=1.0, radius=2.0)
    assert (np.linalg.norm(packed, axis=1) <= 2.0).all()
    mean, within = rule.unpacked(packed.mean(axis=0), clip=1.0, radius=2.0)
    assert mean == pytest.approx([0.45, 0.6], rel=1e-6) and within == pytest.approx(0.5)


def test_own_accuracies_are_exact_sums_over_any_blocks() -> None:
    data = {**CLIENTS["data"], "personal_validation": 7}
    clients = {**CLIENTS, "data": data}
    mechanism = {"kind": "2rr", "epsilon_local": 1.0}
    scenario = parse(document({"kind": "local-only"}, mechanism, population=clients))
    data = scenario.population.hold(np.arange(20, dtype=np.uint32), scenario.stream(0))
    network = Linear().network((8, 8), 10)
    theta = np.random.default_rng(0).normal(size=(20, network.size)).astype(np.float32)
    whole = own_tests.own_accuracy(network, theta, data)
    assert len(whole) == own_tests.places(data) == 6
    # Checkpoints have sums of these numbers: without samples to choose by they stay as they were.
    assert own_tests.places(replace(data, validation=None)) == 3
    parts = [slice(0, 1), slice(1, 8), slice(8, 20)]
    assert np.array_equal(
        whole, sum(own_tests.own_accuracy(network, theta[rows], data[rows]) for rows in parts)
    )
    for kept, sums in zip((data.test, data.validation), np.split(whole, 2), strict=True):
        shares = []
        for client in range(20):
            own = local.all_of(kept[client : client + 1])
            logits = network.forward(theta[client : client + 1], own.chosen.features)[0]
            shares.append((logits.argmax(-1) == own.chosen.labels).mean())
        found = own_tests.spread(sums)
        assert found == pytest.approx((np.mean(shares), np.std(shares)), abs=1e-6)


@pytest.mark.parametrize(
    ("task", "mechanism", "names"),
    [
        ({"kind": "adaped"}, {**STEPS, "sigma": 5.0, "scalar_sigma": 0.5}, ("personal", "alone")),
        ({"kind": "local-only"}, {"kind": "2rr", "epsilon_local": 1e-6}, ("alone",)),
        (
            {"kind": "dp-fedavg"},
            {"kind": "gaussian-steps", "steps": 10, "radius": 0.5, "sigma": 0.1},
            ("starting",),
        ),
        (
            {"kind": "fedavg"},
            {"kind": "linf", "radius": 1.0, "epsilon_local": 2.0, "on_out_of_range": "clip"},
            ("starting",),
        ),
    ],
    ids=lambda given: given.get("kind") if isinstance(given, dict) else None,
)
def test_models_are_chosen_by_samples_that_nothing_is_reported_on(
    tmp_path: Path, task: dict[str, Any], mechanism: dict[str, Any], names: tuple[str, ...]
) -> None:
    data = CLIENTS["data"]
    fewer = {**data, "points": data["points"] - 10, "personal_validation": 10}
    given = document({**task, "rounds": 2}, mechanism, population={**CLIENTS, "data": fewer})
    found = last(played(tmp_path / "run", given), "personal")
    for name in names:
        assert 0.0 < found[f"{name}_validation_accuracy"] <= 1.0
        assert found[f"{name}_validation_accuracy_sd"] >= 0.0 and f"{name}_accuracy" in found
    # Without them there is no such column.
    given = document({**task, "rounds": 2}, mechanism)
    found = last(played(tmp_path / "without", given), "personal")
    assert not [name for name in found if "validation" in name]


# Many messages.


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((10_000, 20, 10, 1.0, 1e-6), (6, 20, 0.79267, 120)),
        ((10_000, 1000, 10, 0.5, 1e-6), (1, 250, 1.40125, 750)),
        ((1000, 300, 5, 2.0, 1e-5), (1, 300, 2.12695, 300)),
        ((100, 50, 200, 1.0, 1e-5), (1, 1, 0.0043416, 7)),
    ],
)
def test_the_theorem_s_parameters_are_the_reference_ones(
    given: tuple[Any, ...], expected: tuple[Any, ...]
) -> None:
    found = mms_parameters(*given, 2304.0)
    assert (found.levels, found.coordinates, found.bits) == (*expected[:2], expected[3])
    assert found.budget == pytest.approx(expected[2], rel=1e-4)


@pytest.mark.parametrize("constant", [SEED_003, SEED_000])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 1.7, 3.0, 6.0])
def test_the_corrected_constant_gives_epsilon_and_the_printed_one_does_not(
    epsilon: float, constant: float
) -> None:
    def reached(c: float) -> float:
        made = mms_parameters(10_000, 20, 10, epsilon, 1e-6, c)
        return linear_rdp_simple(constant * made.budget**2 * 10 / (made.coordinates * 1e4), 1e-6)

    assert reached(safe_constant(epsilon, constant)) == pytest.approx(epsilon)
    printed = reached(3.0 * constant)
    if epsilon <= 1.0:
        assert printed == pytest.approx(math.sqrt(3.0) * epsilon)
    else:
        assert (printed > epsilon * (1 + 1e-9)) == (epsilon < 3.0)


def test_a_smooth_function_is_descended_as_fast_as_the_corrected_bound_says() -> None:
    # F(x) = mean of 1 - cos x_j / 2 (L = 1/2, not convex) of four coordinates, by R^l2 reports.
    from raydp_sim.mechanisms import make
    from raydp_sim.random import Stream

    clients, rounds, start = 500, 60, np.full(4, 1.2)
    sender = make("l2", dimension=4, radius=1.0, clients=clients, epsilon_local=8.0, coordinates=4)
    smoothness, gap = 0.5, float((1.0 - np.cos(start)).sum() / 2.0)
    mse = sender.worst_mse() / clients
    rate, squares = smooth_step(smoothness, gap, mse, rounds), []
    ids, x = np.arange(clients, dtype=np.uint32), start.copy()
    for t in range(rounds):
        gradient = np.sin(x) / 2.0
        squares.append(float(gradient @ gradient))
        sent = sender.randomize(np.tile(gradient, (clients, 1)), Stream(3).at(t).clients(ids))
        index = np.tile(np.arange(sent.payload.shape[1]), clients)
        flat = sent.payload.reshape(len(index), *sent.payload.shape[2:])
        x = x - rate * sender.decode(sender.fold(sender.zero(), index, flat), Stream(4))
    bound = smooth_bound(smoothness, gap, mse, rounds)
    assert 0.1 * bound < np.mean(squares) <= bound
