"""Scenario files: loading, overriding, and coming back unchanged."""

import re
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import yaml

import raydp_sim
from raydp_sim.cli.schema import scenario_schema
from raydp_sim.cli.shipped import shipped
from raydp_sim.errors import InputError
from raydp_sim.scenario import Scenario, bound_mechanism, load, parse
from raydp_sim.scenario.document import is_figure, read
from raydp_sim.scenario.schema import field_docs

SMALL = {
    "name": "small",
    "population": {"clients": 20, "data": {"kind": "bernoulli", "probability": 0.5}},
    "mechanism": {"kind": "2rr", "epsilon_local": 1.0},
}
# The figures that ship have tests of their own.
SIMULATIONS = [name for name, path in shipped().items() if not is_figure(read(path))]
# Those that train models are played by tests of their own (tests/tasks/test_learning.py).
TRAINED = [name for name in SIMULATIONS if name.startswith("learning/")]
# So are bandits, whose batches have sizes of their own (tests/tasks/bandits/test_task.py).
PLAYED = [name for name in SIMULATIONS if name.startswith("bandits/")]
MNIST = re.compile(r"kind: (fashion-)?mnist")
SHARED = Path(__file__).parents[2] / "shared" / "data"
# Smaller, so that each runs in a moment.
FEWER = {
    "levels/fleet": {"privacy__promotions": [{"analyst": 3, "to": 2, "release": 1}]},
    "frequencies": {"population__clients": 3000},
    "one-bit": {"population__clients": 5000},
    "vectors-l2": {"population__clients": 2000, "shuffle__min_batch": 50, "repeat": 2},
}


@pytest.fixture(autouse=True)
def data(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let scenarios that read pictures find them; skip those where there are none."""
    if SHARED.is_dir():
        monkeypatch.setenv("RAYDP_SIM_DATA", str(SHARED))
        return
    name = getattr(request.node, "callspec", None) and request.node.callspec.params.get("name")
    text = shipped()[name].read_text(encoding="utf-8") if name in SIMULATIONS else ""
    if MNIST.search(text) or "RAYDP_SIM_DATA" in text:
        pytest.skip("../shared/data is not there")


@pytest.mark.parametrize("name", SIMULATIONS)
def test_a_shipped_scenario_says_what_it_is_and_comes_back_unchanged(name: str) -> None:
    scenario = load(shipped()[name])
    assert scenario.name == name.rpartition("/")[2]
    assert scenario.description.endswith(".")
    assert parse(scenario.document()) == scenario


@pytest.mark.parametrize("name", SIMULATIONS)
def test_a_shipped_scenario_explains_itself(name: str) -> None:
    lines = shipped()[name].read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    assert sum("#" in line for line in lines) >= sum(":" in line for line in lines) / 3


@pytest.mark.parametrize("name", SIMULATIONS)
def test_a_shipped_scenario_fits_the_schema(name: str) -> None:
    document = yaml.safe_load(shipped()[name].read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(scenario_schema()).validate(document)
    jsonschema.Draft202012Validator(scenario_schema()).validate(load(shipped()[name]).document())


@pytest.mark.parametrize("name", [n for n in SIMULATIONS if n not in (*TRAINED, *PLAYED)])
def test_a_shipped_scenario_runs(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    # The pictures of the stress suite are those of one family.
    pictured = not name.startswith("stress/")
    if pictured:
        request.getfixturevalue("drawn")
    overrides = {"placement__backend": "inline", "task__rounds": 2, **FEWER.get(name, {})}
    result = raydp_sim.run(shipped()[name], out=tmp_path / "run", **overrides)
    assert result.summary["metrics"]["releases"] == min(2, result.summary["rounds"])
    # Where there are several readers, each has an error of its own; iterations have one of means.
    columns = ("squared_error_cohort", "squared_error_public", "squared_error", "disagreement")
    columns += ("excess_risk",)
    (error,) = [name for name in columns if name in result.metrics.schema.names]
    assert np.isfinite(result.metrics[error].to_numpy()).all()
    assert not pictured or (tmp_path / "run" / "plot.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    "change",
    [
        {"poplation": {}},
        {"seed": -1},
        {"mechanism": {"kind": "2rr", "epsilon_local": 1.0, "levels": 3}},
        {"mechanism": {"kind": "linff"}},
        {"mechanism": {"kind": "linf", "epsilon_local": 1.0}},
        {"participation": {"kind": "uniform", "sampled": "many"}},
    ],
)
def test_the_schema_refuses_what_loading_refuses(change: dict[str, object]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**SMALL, **change}, scenario_schema())
    with pytest.raises(InputError):
        parse({**SMALL, **change})


def test_the_schema_takes_classes_by_import_path() -> None:
    own = {"kind": "my_package.my_module:Mine", "anything": 3}
    jsonschema.validate({**SMALL, "mechanism": own}, scenario_schema())


def test_the_schema_explains_every_field_and_names_defaults() -> None:
    schema = scenario_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["properties"]["participation"]["default"]["kind"] == "all"
    for room in ("Dataset", "Availability", "Participation", "Task", "Mechanism"):
        for choice in schema["$defs"][room]["oneOf"]:
            for name, field in choice["properties"].items():
                assert field.get("description"), (room, choice["properties"]["kind"], name)
    for name in ("Population", "Shuffle", "Privacy", "Placement", "Metrics"):
        for field, described in schema["$defs"][name]["properties"].items():
            assert described.get("description") or "$ref" in described, (name, field)


def test_field_docs_join_lines_and_names() -> None:
    class Documented:
        """Something.

        Fields:
            one: first line
                and second.
            two, three: both.

        Example:
            >>> one: not a field
        """

    assert field_docs(Documented) == {
        "one": "first line and second.",
        "two": "both.",
        "three": "both.",
    }


def test_overrides_reach_fields_that_the_file_leaves_out(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(SMALL))
    changed = load(path, ["shuffle.min_batch=7", "repeat=3", "privacy.delta=1e-9"], seed=5)
    assert (changed.shuffle.min_batch, changed.repeat, changed.seed) == (7, 3, 5)
    assert changed.privacy.delta == 1e-9


def test_overriding_leaves_the_given_document_alone() -> None:
    before = yaml.safe_dump(SMALL)
    parse(SMALL, ["population.clients=30"])
    assert yaml.safe_dump(SMALL) == before


def test_a_relative_path_of_data_starts_at_the_scenario_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep").mkdir()
    np.save(tmp_path / "deep" / "bits.npy", np.ones((20, 1)))
    document = {
        **SMALL,
        "population": {"clients": 20, "data": {"kind": "file", "path": "bits.npy"}},
    }
    (tmp_path / "deep" / "small.yaml").write_text(yaml.safe_dump(document))
    monkeypatch.chdir(tmp_path)
    scenario = load("deep/small.yaml")
    # The resolved scenario can be read back from anywhere.
    assert parse(scenario.document()).document() == scenario.document()


def test_a_target_is_shared_out_over_the_releases() -> None:
    document = {**SMALL, "mechanism": {"kind": "2rr", "target": {"epsilon": 6.0}}}
    scenario = parse({**document, "task": {"kind": "mean", "rounds": 3}})
    assert bound_mechanism(scenario).epsilon_local == pytest.approx(2.0)


def test_several_faults_are_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        parse({**SMALL, "seed": -1, "repeat": 0})
    first, second = str(caught.value).splitlines()
    assert "seed is -1" in first and "repeat is 0" in second


def test_a_scenario_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        parse(SMALL).seed = 3  # type: ignore[misc]  # that it cannot is the point
    assert isinstance(parse(SMALL), Scenario)


def test_a_key_given_twice_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "twice.yaml"
    file.write_text("name: a\nseed: 1\nseed: 2\n")
    with pytest.raises(InputError, match=r"twice.yaml: .*line 3, .*'seed' is given twice"):
        load(file)


def test_the_rounds_can_be_set_where_the_file_leaves_the_task_out() -> None:
    document = {
        "name": "a",
        "population": {"clients": 5, "data": {"kind": "bernoulli", "probability": 0.5}},
        "mechanism": {"kind": "2rr", "epsilon_local": 1.0},
    }
    assert parse(document, ["task.rounds=3"]).task.rounds == 3


def test_an_epsilon_beyond_the_draws_is_refused() -> None:
    document = {
        "name": "a",
        "population": {"clients": 5, "data": {"kind": "bernoulli", "probability": 0.5}},
        "mechanism": {"kind": "2rr", "epsilon_local": 40.0},
    }
    with pytest.raises(InputError, match=r"mechanism.epsilon_local is 40.0; .*53-bit"):
        parse(document)


def test_a_mechanism_without_noise_is_refused() -> None:
    document = {
        "name": "a",
        "population": {"clients": 5, "data": {"kind": "gaussian", "dimension": 3}},
        "mechanism": {"kind": "quan", "radius": 1.0, "on_out_of_range": "clip"},
    }
    with pytest.raises(InputError, match=r"mechanism.kind is 'quan'; it adds no noise.*use 'r2'"):
        parse(document)
    document["mechanism"] |= {"kind": "r2", "epsilon_local": 1.0}
    assert parse(document).mechanism.kind == "r2"
