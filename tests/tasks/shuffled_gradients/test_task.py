"""Shuffled gradients on the actors: what is sent, in which order, what is shown, what it costs."""

import json

import numpy as np
import pytest

from raydp_sim.actors.shuffler import ShufflerActor
from raydp_sim.cli.main import main
from raydp_sim.errors import InputError, RunError
from raydp_sim.mechanisms.central_epochs import CentralEpochs
from raydp_sim.metrics import streams
from raydp_sim.privacy.events import EpochRelease, GaussianRelease, SecretEpochRelease
from raydp_sim.run import run
from raydp_sim.scenario import bound_mechanism, parse, setting_of
from raydp_sim.scenario.accounting import planned_releases
from raydp_sim.stream.trust import TRUSTS
from raydp_sim.tasks.charging import Formed
from raydp_sim.tasks.claims import check_event
from tests.conftest import assert_identical, placed_everywhere, with_placement
from tests.tasks.shuffled_gradients.fixture import FINAL

WAVES = {"kind": "tests.tasks.shuffled_gradients.fixture:Waves"}
TASK = {
    "kind": "shuffled-gradients",
    "order": "ig",
    "loss": "mean",
    "regulariser": "ball",
    "weight": 10.0,
    "step_size": 0.1,
    "rounds": 4,
}
NOISE = {
    "kind": "central-epochs",
    "radius": 3.0,
    "gradient_clip": 1.0,
    "target": {"epsilon": 5.0, "delta": 1e-6},
}


def gradients(task=(), mechanism=None, clients=6, data=WAVES, **sections):
    return {
        "name": "gradients",
        "seed": 3,
        "trust": "central",
        "population": {"clients": clients, "data": data},
        "task": {**TASK, **dict(task)},
        "mechanism": NOISE if mechanism is None else mechanism,
        "placement": {"backend": "inline", "checkpoint_seconds": 0},
        **sections,
    }


@pytest.mark.parametrize("algorithm", FINAL)
def test_the_fixture_to_all_digits_on_the_actors(algorithm, tmp_path) -> None:
    bare = {"kind": "bare-records", "radius": 3.0, "gradient_clip": 1.0}
    found = parse(gradients({"algorithm": algorithm}, bare, privacy={"guarantee": "none"}))
    summary = run(found, out=tmp_path / "run").summary
    np.testing.assert_allclose(summary["estimate"]["values"], FINAL[algorithm], atol=5.1e-11)
    assert summary["privacy"]["epsilon"] == np.inf


def test_records_are_sent_once_and_only_the_last_iterate_is_shown(tmp_path) -> None:
    summary = run(parse(gradients({"order": "rr"})), out=tmp_path / "run").summary
    metrics = tmp_path / "run" / "metrics"
    rows = streams.read(metrics, "releases").to_pylist()
    assert [row["messages"] for row in rows] == [6, 0, 0, 0]
    assert [row["asked"] for row in rows] == [6, 0, 0, 0]
    assert [row["participants"] for row in rows] == [6] * 4
    assert summary["communication"]["reports"] == 6
    assert set(streams.read(metrics, "estimates")["release"].to_pylist()) == {3}
    assert streams.read(metrics, "epochs")["shown"].to_pylist() == [False] * 3 + [True]
    # Epsilon is worked out where something is shown.
    assert [row["epsilon"] is None for row in rows] == [True] * 3 + [False]
    again = run(parse(gradients({"released": "epochs"})), out=tmp_path / "all").summary
    shown = streams.read(tmp_path / "all" / "metrics", "estimates")["release"].to_pylist()
    assert set(shown) == {0, 1, 2, 3}
    # Ends of epochs are what is charged in either case.
    assert again["privacy"]["epsilon"] == pytest.approx(summary["privacy"]["epsilon"])


@pytest.mark.parametrize(
    ("task", "sigma"),
    [
        ({"algorithm": "private"}, 161.0921),
        ({"algorithm": "priv-pub"}, 113.9093),
        ({"algorithm": "interleaved"}, 7.1971),
        ({"algorithm": "interleaved", "share": 0.25}, 5.8783),
        ({"algorithm": "pub-priv", "share": 0.25}, 82.1412),
    ],
)
def test_noise_of_a_scenario_is_that_of_the_table(task, sigma) -> None:
    data = {"kind": "shifted-standin", "records": 1000, "dimension": 2}
    noise = {**NOISE, "radius": 10.0, "gradient_clip": 10.0}
    found = parse(gradients({**task, "rounds": 50}, noise, 1000, data))
    calibrated = bound_mechanism(found)
    assert isinstance(calibrated, CentralEpochs)
    assert round(calibrated.need_sigma(), 4) == sigma


@pytest.mark.parametrize("accountant", ["pabi", "secret-order", "every-step"])
@pytest.mark.parametrize("algorithm", ["private", "priv-pub", "pub-priv", "interleaved"])
@pytest.mark.parametrize("order", ["so", "rr"])
def test_runs_meet_their_target(accountant, algorithm, order, tmp_path) -> None:
    task, noise = {"algorithm": algorithm, "order": order}, {**NOISE, "accountant": accountant}
    found = parse(gradients(task, noise))
    summary = run(found, out=tmp_path / "run").summary
    privacy, said = summary["privacy"], summary["gradients"]
    assert 3.0 < privacy["epsilon"] <= 5.0 * (1.0 + 1e-9)
    assert privacy["planned"] == pytest.approx(privacy["epsilon"])
    table = {row["accountant"]: row for row in said["accountants"]}
    assert [name for name in table if table[name]["charged"]] == [accountant]
    # Converted as the text does, what is charged is what was asked for.
    assert table[accountant]["epsilon"] == pytest.approx(5.0, rel=1e-6)
    assert said["accountant"].startswith(accountant)
    assert "one item of one client's data" in privacy["assumption"]
    assert ("IF NOBODY KNOWS" in privacy["assumption"]) == (accountant == "secret-order")
    if accountant == "pabi":
        assert privacy["epsilon_seed"] == pytest.approx(5.0, rel=1e-9)


def test_public_records_alone_cost_nothing(tmp_path) -> None:
    summary = run(parse(gradients({"algorithm": "public-only"})), out=tmp_path / "run").summary
    assert summary["privacy"]["epsilon"] == 0.0
    assert "cosines, not sines" in summary["gradients"]["public"]


def test_orders_are_fresh_or_one_and_each_of_them_equally_likely() -> None:
    """Of 2,400 orders of 3 records each is drawn 400 times: 5 standard deviations, below 2e-6."""
    found = parse(gradients({"order": "rr"}))
    task = found.task
    assert [task.drawn_order(k) for k in range(3)] == [0, 1, 2]
    assert [parse(gradients({"order": "so"})).task.drawn_order(k) for k in range(3)] == [0, 0, 0]
    assert parse(gradients()).task.drawn_order(0) is None
    shuffler = ShufflerActor(found.document())
    drawn = [tuple(shuffler.order(k, k, 3).places) for k in range(2400)]
    counts = [drawn.count(one) for one in sorted(set(drawn))]
    assert len(counts) == 6
    assert max(abs(count - 400) for count in counts) < 5.0 * np.sqrt(2400 * 5.0 / 36.0)
    assert (shuffler.order(7, 0, 50).places == shuffler.order(1, 0, 50).places).all()


def test_a_learner_that_is_told_no_order_releases_nothing() -> None:
    found = parse(gradients({"order": "rr"}))
    setting, task = setting_of(found), found.task
    ask = task.plan(setting)[0].ask
    state = {**task.init(setting), "records": np.zeros((6, 3)), "least": np.asarray(0.0)}
    told = task.zero(setting, ask, 0)
    with pytest.raises(RunError, match="no order"):
        task.step(setting, ask, 0, state, told, Formed(6, TRUSTS["central"]), found.stream(0))


@pytest.mark.parametrize("order", ["so", "rr"])
def test_resumed_and_differently_placed_runs_are_the_same(order, tmp_path) -> None:
    base = parse(gradients({"order": order, "algorithm": "interleaved"}))
    placed_everywhere(base, tmp_path, stop=2)


@pytest.mark.cluster
def test_ray_plays_what_one_process_plays(tmp_path) -> None:
    base = parse(gradients({"order": "rr", "algorithm": "interleaved"}))
    run(base, out=tmp_path / "one")
    run(with_placement(base, backend="ray", clients_per_actor=3), out=tmp_path / "ray")
    assert_identical(tmp_path / "one", tmp_path / "ray")


def test_no_event_claims_less_than_the_steps_of_its_epoch_cost() -> None:
    noise = CentralEpochs(dimension=3, radius=3.0, gradient_clip=1.0, sigma=4.0, share=0.5)
    formed = Formed(6, TRUSTS["central"], clients=6, honest=6)
    multiplier = noise.multiplier
    check_event(EpochRelease(multiplier, 6, 3), noise, formed)
    for event, says in (
        (EpochRelease(1.01 * multiplier, 6, 3), "less than stated"),
        (EpochRelease(multiplier, 6, 2), "3 of them private"),
        (EpochRelease(multiplier, 60, 3), "6 steps"),
        (SecretEpochRelease(multiplier, 6, 3), "mechanism's to say"),
        (GaussianRelease(1.01 * multiplier), "less than stated"),
    ):
        with pytest.raises(RunError, match=says):
            check_event(event, noise, formed)
    local = Formed(6, TRUSTS["local"], clients=6, honest=6)
    with pytest.raises(RunError, match="trusted"):
        check_event(EpochRelease(multiplier, 6, 3), noise, local)


def test_a_plan_has_an_epoch_of_each_kind_with_its_own_price() -> None:
    found = parse(gradients({"algorithm": "pub-priv", "rounds": 5}))
    parts = planned_releases(found, bound_mechanism(found))
    assert [part.times for part in parts] == [2, 3]
    events = [
        found.task.event(setting_of(found), part.ask, Formed(6, TRUSTS["central"]))
        for part in parts
    ]
    assert [event.private for event in events] == [0, 6]  # type: ignore[union-attr]


def without(mapping, *names):
    return {name: value for name, value in mapping.items() if name not in names}


BAD = {
    "n_d > n": (gradients({"algorithm": "interleaved", "share": 1.2}), "task.share"),
    "no public records": (
        gradients({"algorithm": "interleaved"}, data={"kind": "gaussian", "dimension": 3}),
        "population.data has no public records",
    ),
    "few public records": (
        gradients({"algorithm": "interleaved"}, data={"kind": WAVES["kind"].replace(":", ":Few")}),
        "an epoch takes 3 public records, n - n_d; there are 2",
    ),
    "long public records": (
        gradients(
            {"algorithm": "interleaved", "loss": "ridge", "step_size": 0.05},
            data={"kind": WAVES["kind"].replace(":", ":Long")},
        ),
        "task.step_size is 0.05; steps along public records",
    ),
    "S": (gradients({"algorithm": "priv-pub", "share": 0.1}), "task.share"),
    "S at K": (gradients({"algorithm": "priv-pub", "share": 1.0}), "task.share"),
    "silent public steps": (
        gradients({"algorithm": "interleaved", "public_noise": False}),
        "task.public_noise",
    ),
    "delta 1": (
        gradients(mechanism={**NOISE, "target": {"epsilon": 5.0, "delta": 1.0}}),
        "mechanism.target.delta",
    ),
    "delta 0": (
        gradients(mechanism={**NOISE, "target": {"epsilon": 5.0, "delta": 0.0}}),
        "target.delta",
    ),
    "epsilon": (
        gradients(mechanism={**NOISE, "target": {"epsilon": 0.0, "delta": 1e-6}}),
        "mechanism.target.epsilon",
    ),
    "no bound": (gradients(mechanism=without(NOISE, "gradient_clip")), "gradient_clip"),
    "no such bound": (
        gradients(mechanism={**without(NOISE, "gradient_clip"), "lipschitz": 9.0}),
        "mechanism.lipschitz",
    ),
    "step size": (gradients({"step_size": 2.1}), "task.step_size"),
    "ridge's step size": (
        gradients({"step_size": 0.2, "loss": "ridge"}),
        "task.step_size is 0.2",
    ),
    "labels": (gradients({"loss": "logistic"}), "labels 0 and 1"),
    "secret order": (
        gradients(mechanism={**NOISE, "accountant": "secret-order"}),
        "mechanism.accountant",
    ),
    "trust": (gradients(trust="local"), "trust is 'local'"),
    "mechanism": (
        gradients(mechanism={"kind": "central-gaussian", "radius": 1, "epsilon": 1, "delta": 0.01}),
        "mechanism.kind",
    ),
    "plain": (gradients({"algorithm": "plain"}), "task.algorithm"),
    "budget": (
        gradients(privacy={"delta": 1e-6, "budget": {"epsilon": 9.0, "delta": 1e-6}}),
        "privacy.budget.epsilon",
    ),
    "clipped targets": (
        gradients({"loss": "ridge"}, {**NOISE, "on_out_of_range": "clip"}),
        "mechanism.on_out_of_range",
    ),
    "outside": (gradients(mechanism={**NOISE, "radius": 0.5}), "population.data"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_by_name_with_exit_code_2(case, tmp_path, capsys) -> None:
    document, says = BAD[case]
    path = tmp_path / "bad.yaml"
    path.write_text(json.dumps(document))
    with pytest.raises(SystemExit) as left:
        main(["validate", str(path)])
    assert left.value.code == 2
    told = capsys.readouterr().err
    assert says in told and "Traceback" not in told


def test_every_step_takes_any_step_size() -> None:
    parse(gradients({"step_size": 2.1}, {**NOISE, "accountant": "every-step"}))


def test_twice_the_noise_as_the_author_has_it() -> None:
    usual, twice = (
        bound_mechanism(parse(gradients(mechanism={**NOISE, "conservative": each})))
        for each in (False, True)
    )
    assert twice.need_sigma() == pytest.approx(2.0 * usual.need_sigma())  # type: ignore[attr-defined]


@pytest.mark.parametrize("task", [{"kind": "mean"}, dict(TASK)], ids=lambda task: task["kind"])
def test_what_is_private_is_the_tasks_to_say_and_no_files(task) -> None:
    """With a share of 0 a release of another task would be charged as nothing at all."""
    said = {"kind": "central-epochs", "radius": 3.0, "gradient_clip": 1.0, "sigma": 3.0}
    document = gradients(mechanism={**said, "share": 0.0}) | {"task": task}
    with pytest.raises(InputError, match=r"mechanism\.share is 0\.0; the task fills it in"):
        parse(document)


def test_a_mean_with_the_noise_of_a_step_is_not_said_to_be_amplified_by_steps(tmp_path) -> None:
    said = {"kind": "central-epochs", "radius": 3.0, "gradient_clip": 1.0, "sigma": 3.0}
    document = gradients(mechanism=said) | {"task": {"kind": "mean", "rounds": 2}}
    privacy = run(parse(document), out=tmp_path / "run").summary["privacy"]
    assert privacy["epsilon"] > 1.0 and privacy["amplification"]["used"] == "none"
