"""Grids, what is kept of their points, and how they are drawn."""

import itertools
import json
from pathlib import Path

import pytest

from raydp_sim.errors import InputError
from raydp_sim.sweep import manifest, picture
from raydp_sim.sweep.comparison import differences, labels
from raydp_sim.sweep.grid import Axis, Point, points
from raydp_sim.sweep.outcomes import Outcome, best, measure_of, table


def outcome(error: float | None, epsilon: float, spread: float | None = None, **values) -> Outcome:
    return Outcome(Point(values), error, spread, epsilon, 1e-6, 1.0, 8, 100, 2.0, 0.5)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("task.rounds", "write it as section.field=value"),
        ("=1,2", "write it as section.field=value"),
        ("task..rounds=1", "write it as section.field=value"),
        ("task.rounds=", "task.rounds has no values"),
        ("task.rounds=1,,2", "not valid YAML"),
        ("task.rounds=[1", "not valid YAML"),
        ("task.rounds=1,2,1", "task.rounds has 1 twice"),
        ("a=1,1.0", "a has 1 twice"),
        ("a=1e1,10", "a has 10 twice"),
        ("a='1',1", "a has 1 twice"),
    ],
)
def test_bad_axes_are_told_how_to_be_written(text: str, words: str) -> None:
    with pytest.raises(InputError, match="--over") as caught:
        Axis.read(text)
    assert words in str(caught.value)


def test_values_are_yaml() -> None:
    assert Axis.read("m={kind: krr}, {kind: rappor}").values == (
        {"kind": "krr"},
        {"kind": "rappor"},
    )
    assert Axis.read("m=true, 1, x, [1, 2]").values == (True, 1, "x", [1, 2])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (("a.b", "a.b"), "given twice"),
        (("a.b", "a"), "a.b is part of a"),
        (("a", "a.b"), "part of"),
    ],
)
def test_a_field_is_swept_once(fields: tuple[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        points([Axis(field, (1, 2)) for field in fields])


def test_a_grid_has_an_end() -> None:
    with pytest.raises(InputError, match="1089 points"):
        points([Axis("a", tuple(range(33))), Axis("b", tuple(range(33)))])


def test_every_point_has_a_folder_of_its_own_in_any_order() -> None:
    axes = [Axis("a.x", (1, 2.5, "x/../y")), Axis("b.x", ({"kind": "krr"}, "z" * 300))]
    folders = [point.folder for point in points(axes)]
    assert len(set(folders)) == 6 and all(len(name) < 250 and "/" not in name for name in folders)
    assert set(folders) == {point.folder for point in points(axes[::-1])}


def test_the_least_error_is_best_and_of_equal_ones_the_cheaper() -> None:
    made = [
        outcome(0.5, 1.0, 0.1, a=1),
        outcome(0.2, 3.0, 0.1, a=2),
        outcome(0.2, 2.0, 0.1, a=3),
        outcome(None, 0.1, None, a=4),
        outcome(2.0, 1.0, 0.1, a=5),
    ]
    for order in itertools.permutations(made):
        found = best(order)
        assert found is not None and found.cheapest is not None
        assert found.least_error.point.values == {"a": 3}
        assert found.cheapest.point.values == {"a": 1}
        # 0.5 is 0.3 away, and two standard errors of the difference are 0.28.
        assert found.close == 1
    assert best([outcome(None, 1.0, a=1)]) is None
    same = best([outcome(0.5, 1.0, a=1), outcome(0.2, 1.0, a=2)])
    assert same is not None and same.cheapest is None


def test_runs_are_compared_by_an_error_that_all_have() -> None:
    one = {"metrics": {"squared_error_cohort": 1.0, "running_squared_error": 2.0, "releases": 2}}
    other = {"metrics": {"squared_error_cohort": 1.0, "releases": 2}}
    nothing = {"metrics": {"releases": 0}}
    assert measure_of([one, nothing]) == "running_squared_error"
    assert measure_of([one, other]) == "squared_error_cohort"
    assert measure_of([nothing]) is None


def test_the_table_has_a_type_for_every_field() -> None:
    made = [
        outcome(0.5, 1.0, n=1, kind="krr", mixed=1, flag=True),
        outcome(None, 2.0, n=2.5, kind="rappor", mixed="x", flag=False),
    ]
    found = table(made, "noise")
    assert [str(kind) for kind in found.schema.types[:4]] == ["double", "string", "string", "bool"]
    assert found["error"].to_pylist() == [0.5, None] and found["mixed"].to_pylist() == ["1", "x"]
    assert found.schema.metadata == {b"error": b"noise"}


def across(made: list[Outcome]) -> tuple[str, str]:
    along = picture._along(made)
    return along, picture._across(made, along).label


def test_error_is_drawn_against_epsilon_where_it_varies() -> None:
    grid = list(itertools.product((1, 2), (1, 2)))
    epsilon = "epsilon of the client charged most"
    assert across([outcome(0.1, float(a), a=a, b=b) for a, b in grid]) == ("a", epsilon)
    assert across([outcome(0.1, float(b), a=a, b=b) for a, b in grid]) == ("b", epsilon)
    assert across([outcome(0.1, 1.0, a=a, b=b) for a, b in grid]) == ("a", "a")
    infinite = [outcome(0.1, float("inf"), a=a, b=b) for a, b in grid]
    assert across(infinite) == ("a", "a")


@pytest.mark.parametrize(
    "made",
    [
        [outcome(0.1 * a, 1.0 / a, 0.2, a=a, b=b) for a in (1, 2) for b in ("x", "y")],
        [outcome(0.1, 1.0, a=kind) for kind in ("krr", "rappor")],
        [outcome(None, 1.0, a=1), outcome(0.0, 1.0, a=2)],
        [outcome(None, 1.0, a=1)],
    ],
)
def test_every_sweep_can_be_drawn(made: list[Outcome]) -> None:
    found = best(made)
    drawn = picture.draw(made, "noise", None if found is None else found.least_error)
    assert drawn.startswith(b"\x89PNG") and len(drawn) > 5_000


def test_a_directory_belongs_to_one_sweep(tmp_path: Path) -> None:
    axes = [Axis("a", (1, 2)), Axis("b", ("x",))]
    made = manifest.manifest("s.yaml", axes, {"one": {"seed": 1}})
    manifest.write(tmp_path, made)
    turned = [Axis("b", ("x",)), Axis("a", (2, 1))]
    manifest.check(tmp_path, manifest.manifest("elsewhere.yaml", turned, {"one": {"seed": 1}}))
    with pytest.raises(InputError, match="another grid, --over a=1,2 --over b=x"):
        manifest.check(tmp_path, manifest.manifest("s.yaml", axes[:1], {"one": {"seed": 1}}))
    with pytest.raises(InputError, match=r"made from s\.yaml with other contents"):
        manifest.check(tmp_path, manifest.manifest("s.yaml", axes, {"one": {"seed": 2}}))
    (tmp_path / manifest.NAME).write_text(json.dumps([1]))
    with pytest.raises(InputError, match="damaged"):
        manifest.check(tmp_path, made)


def test_differences_go_down_to_fields() -> None:
    one = {"a": {"kind": "x", "n": 1}, "l": [{"m": 1}, {"m": 2}], "description": "p", "same": [1]}
    other = {"a": {"kind": "y"}, "l": [{"m": 1}], "description": "q", "same": [1]}
    assert differences([one, other]) == {"a.kind": ["x", "y"], "a.n": [1, None], "l.1.m": [2, None]}
    assert labels(["/r/a/x", "/r/b/x", "/r/b/y"]) == ["a/x", "b/x", "b/y"]
