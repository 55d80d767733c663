"""Values are always admitted: refused, or clipped and counted; errors are told by their cause."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from raydp_sim.errors import InputError
from raydp_sim.mechanisms import MECHANISMS, make
from raydp_sim.mechanisms.randomizer import Randomizer
from raydp_sim.metrics import streams
from raydp_sim.privacy.ledger import store
from raydp_sim.random import Stream
from raydp_sim.run import run
from tests.cli.test_bad_input import call
from tests.conftest import placed_everywhere, scenario

MECHANISM = {
    "gaussian": {"radius": 2.5, "epsilon_local": 2.0, "delta_local": 1e-8},
    "laplace": {"radius": 6.0, "epsilon_local": 2.0},
    "linf": {"radius": 1.0, "epsilon_local": 2.0},
    "l2": {"radius": 2.5, "epsilon_local": 2.0},
    "central-gaussian": {"radius": 2.5, "epsilon": 2.0, "delta": 1e-8},
}


def outside(kind, task="Outside", clip=False, **sections):
    chosen = {"kind": kind, **MECHANISM[kind]}
    if clip:
        chosen["on_out_of_range"] = "clip"
    trust = "central" if kind.startswith("central") else "shuffle"
    own = {"kind": f"tests.tasks.examples:{task}", "rounds": 3, **sections.pop("fields", {})}
    return scenario(40, task=own, mechanism=chosen, trust=trust, **sections)


def held(base, clients=40):
    ids = np.arange(clients, dtype=np.uint32)
    return base.population.data.hold(ids, base.stream(0).at("data"))


# A user's task whose values are ten times what the mechanism takes.


@pytest.mark.parametrize("kind", MECHANISM)
def test_values_outside_the_domain_are_refused_by_client_and_index(kind, tmp_path):
    base = outside(kind)
    with pytest.raises(InputError, match=r"client \d+ is outside the .*: index \d holds -?\d"):
        run(base, out=tmp_path / "run")
    assert streams.read(tmp_path / "run" / "metrics", "releases").num_rows == 0
    assert store.read(tmp_path / "run" / "ledger").num_rows == 0


@pytest.mark.parametrize("kind", MECHANISM)
def test_values_outside_the_domain_are_clipped_and_counted(kind, tmp_path):
    base = outside(kind, clip=True)
    rows = run(base, out=tmp_path / "run").metrics.to_pylist()
    values = 10.0 * held(base)
    ball = make(kind, dimension=6, **MECHANISM[kind]).domain
    size = np.abs(values).max(axis=1) if kind == "linf" else np.sqrt((values**2).sum(axis=1))
    if kind == "laplace":
        size = np.abs(values).sum(axis=1)
    share = 1.0 - ball.radius / size[size > ball.radius]
    kept = ball.admit(values, on_out_of_range="clip")
    bias = np.linalg.norm(kept.mean(axis=0) - values.mean(axis=0))
    assert len(share) > 30
    for row in rows:
        assert row["outside"] == len(share)
        assert row["outside_share"] == pytest.approx(share.mean(), rel=1e-9)
        # Of what was sent; the task's truth is of what clients hold, which is a tenth.
        assert row["clipping_bias"] == pytest.approx(bias, rel=1e-6)


def test_the_command_refuses_them_with_exit_code_2(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    document = outside("laplace").document()
    Path("scenario.yaml").write_text(yaml.safe_dump(document))
    result = call("run", "scenario.yaml")
    assert result.exit_code == 2, result.output
    assert "scenario.yaml: client 0 is outside the l1 ball of radius 6: index" in result.stderr
    assert "Traceback" not in result.stderr
    clipped = call("run", "scenario.yaml", "--set", "mechanism.on_out_of_range=clip", "--json")
    assert clipped.exit_code == 0, clipped.stderr
    assert json.loads(clipped.stdout)["metrics"]["clipping_bias"] > 0.1


def test_data_that_a_task_overwrites_are_not_randomized_unchecked(tmp_path):
    """They were checked before; in whatever company a client is, it cannot write to them."""
    for participation in ({"kind": "all"}, {"kind": "uniform", "sampled": 10}):
        base = outside("laplace", "Overwriting", participation=participation)
        with pytest.raises(ValueError, match="read-only"):
            run(base, out=tmp_path / participation["kind"])
        assert store.read(tmp_path / participation["kind"] / "ledger").num_rows == 0


def test_every_mechanism_refuses_what_is_no_number_or_too_wide():
    tried = 0
    for kind, cls in MECHANISMS.kinds.items():
        for example in cls.examples[:1]:
            mechanism = make(kind, **{"dimension": 1, "clients": 50, **example})
            guard, width = Randomizer(mechanism), mechanism.domain.width
            own = Stream(1).clients(np.arange(5, 8, dtype=np.uint32))
            for clip in ("refuse", "clip"):
                guard.mechanism = mechanism.model_copy(update={"on_out_of_range": clip})
                for bad in (np.nan, np.inf, -np.inf):
                    values = np.zeros((3, width))
                    values[1, -1] = bad
                    words = rf"client 6 holds -?(nan|inf) at index {width - 1}; every value"
                    with pytest.raises(InputError, match=words):
                        guard(values, own)
                with pytest.raises(InputError, match=rf"takes \(clients, {width}\)"):
                    guard(np.zeros((3, width + 1)), own)
                with pytest.raises(InputError, match="real numbers"):
                    guard(np.zeros((3, width), complex), own)
            assert guard.clipped.values == 0
            tried += 1
    assert tried == len(MECHANISMS.kinds) > 20


def test_a_randomizer_inside_local_steps_checks_and_counts_too():
    mechanism = make("laplace", epsilon_local=1.0, dimension=2, radius=1.0)
    own = Stream(1).clients(np.arange(2, dtype=np.uint32))
    with pytest.raises(InputError, match="client 1 is outside the l1 ball"):
        Randomizer(mechanism)(np.array([[0.1, 0.1], [3.0, 0.0]]), own)
    guard = Randomizer(mechanism.model_copy(update={"on_out_of_range": "clip"}))
    guard(np.array([[0.1, 0.1], [3.0, 0.0]]), own)
    assert (guard.clipped.rows, guard.clipped.values) == (1, 2)


# How vectors are clipped.


def test_radial_clipping_keeps_the_direction_and_clamping_the_coordinates():
    values = np.array([[0.5, -0.25, 0.125], [4.0, -2.0, 1.0]])
    known = {"epsilon_local": 1.0, "dimension": 3, "radius": 1.0, "on_out_of_range": "clip"}
    clamp, radial = (
        make("linf", **known, clip=how).admit(values, None) for how in ("clamp", "radial")
    )
    assert clamp.values.tolist() == [[0.5, -0.25, 0.125], [1.0, -1.0, 1.0]]
    assert radial.values.tolist() == [[0.5, -0.25, 0.125], [1.0, -0.5, 0.25]]
    assert clamp.share.tolist() == radial.share.tolist() == [0.0, 0.75]


@pytest.mark.parametrize("kind", ["rinf", "linf"])
def test_gradients_in_single_precision_are_sent_as_their_doubles_are(kind):
    """Though nothing is clamped of them but what is looked at."""
    mechanism = make(kind, epsilon_local=2.0, dimension=50, radius=0.3, on_out_of_range="clip")
    single = np.random.default_rng(3).normal(0.0, 0.2, (300, 50)).astype(np.float32)
    single[:100] *= np.float32(0.1)
    own = Stream(4).clients(np.arange(300, dtype=np.uint32))
    found = []
    for values in (single, single.astype(np.float64)):
        guard = Randomizer(mechanism, sums_cut=False)
        sent = guard(values, own).payload
        found.append((sent.tolist(), guard.clipped.rows, guard.clipped.share))
    assert found[0] == found[1] and 100 < found[0][1] <= 200
    admitted = mechanism.admit(single, own.ids)
    assert np.array_equal(admitted.values, np.clip(single.astype(np.float64), -0.3, 0.3))
    some = admitted.take(slice(250, 260))
    assert np.array_equal(some.values, admitted.values[250:260]) and len(some) == 10
    for wrong in (np.nan, np.inf):
        single[7, 3] = wrong
        with pytest.raises(InputError, match=r"client 7 holds .* at index 3"):
            mechanism.admit(single, own.ids)


@pytest.mark.parametrize("how", ["clamp", "radial"])
def test_how_vectors_are_clipped_is_the_scenarios_to_say(how, tmp_path):
    base = outside("linf", clip=True, fields={"factor": 3.0})
    document = base.document()
    document["mechanism"]["clip"] = how
    rows = run(document, out=tmp_path / "run").metrics.to_pylist()
    values = 3.0 * held(base)
    size = np.maximum(1.0, np.abs(values).max(axis=1))[:, None]
    kept = np.clip(values, -1.0, 1.0) if how == "clamp" else values / size
    bias = np.linalg.norm(kept.mean(axis=0) - values.mean(axis=0))
    assert rows[0]["clipping_bias"] == pytest.approx(bias, rel=1e-6)


# Noise, clipping and participation, each by itself.


def exact(values, tmp_path, **sections):
    """A run whose mechanism sends numbers at the ends of its ball as they are."""
    np.save(tmp_path / "values.npy", np.array(values, float)[:, None])
    data = {"kind": "file", "path": str(tmp_path / "values.npy")}
    mechanism = {"kind": "quan", "radius": 1.0, "on_out_of_range": "clip"}
    base = scenario(
        rounds=3,
        population={"clients": len(values), "data": data},
        mechanism=mechanism,
        privacy={"guarantee": "none"},
        **sections,
    )
    return run(base, out=tmp_path / "run").metrics.to_pylist()


def test_noise_alone(tmp_path):
    for row in run(scenario(60), out=tmp_path / "run").metrics.to_pylist():
        assert row["noise"] > 0.01 and row["clipping_bias"] == row["participation_bias"] == 0.0
        assert row["noise"] ** 2 == pytest.approx(row["squared_error_cohort"])
        assert row["outside"] == 0 and row["outside_share"] == 0.0


def test_clipping_alone_and_the_truth_is_that_of_the_raw_data(tmp_path):
    for row in exact([1.0, -1.0, 4.0, 4.0], tmp_path):
        assert (row["noise"], row["participation_bias"]) == (0.0, 0.0)
        # The raw mean is 2, what is sent has the mean 0.5.
        assert row["clipping_bias"] == 1.5 and row["squared_error_cohort"] == 2.25
        assert row["outside"] == 2 and row["outside_share"] == 0.75


def test_participation_alone(tmp_path):
    cohort = {"kind": "uniform", "sampled": 3}
    rows = exact([1.0] * 4 + [-1.0] * 4, tmp_path, participation=cohort)
    for row in rows:
        assert row["noise"] == row["clipping_bias"] == row["squared_error_cohort"] == 0.0
    # Three of eight: their mean cannot be 0.
    assert min(abs(rows[0]["participation_bias"] - off) for off in (1 / 3, 1.0)) < 1e-9


def test_values_far_beyond_all_sums_are_clipped_like_any_other(tmp_path):
    for row in exact([1e300, -1e300, 1.0, 1.0], tmp_path):
        assert row["noise"] == 0.0 and row["outside"] == 2 and row["outside_share"] == 1.0


@pytest.mark.parametrize("kind", ["linf", "central-gaussian"])
def test_what_was_clipped_does_not_depend_on_placement(kind, tmp_path):
    placed_everywhere(outside(kind, clip=True), tmp_path, stop=2)
