"""Levels that cannot be are refused by name, before anything is written."""

import math

import pytest
from click.testing import CliRunner

from raydp_sim.cli.main import main
from raydp_sim.errors import InputError
from raydp_sim.scenario import bound_mechanism, parse
from tests.actors.leveled import analysts

PUBLIC = {"kind": "hadamard-cascade", "categories": 10, "epsilon_local": 1.0}
REC = {"kind": "ldp-rec", "categories": 10}
PROMOTION = {"analyst": 2, "to": 1, "release": 1}


def levels(*epsilons, **more):
    return {"privacy": {"levels": list(epsilons), **more}}


def promoted(**change):
    return levels(3.0, 2.0, 1.0, promotions=[PROMOTION | change])


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        (levels(1.0, 2.0), r"privacy.levels is .*it holds 2 after 1; write them falling"),
        (levels(2.0, 1.0, 1.0), r"privacy.levels is .*it holds 1 twice; .*share one level"),
        (levels(1.0, 0.0), r"privacy.levels is .*it holds 0 at 1; .*nothing can be estimated"),
        (levels(1.0, -1.0), r"privacy.levels is .*it holds -1 at 1"),
        (levels(1.0, 1e-7), r"privacy.levels is .*it holds 1e-07 at 1"),
        (levels(math.nan, 1.0), r"privacy.levels is .*it holds nan at 0; give a number"),
        (levels(math.inf, math.inf, 1.0), r"privacy.levels is .*it holds inf at 1"),
        (levels(math.inf), r"privacy.levels is .*its last level is public and must be finite"),
        (levels(), r"privacy.levels is "),
        ({"privacy": {}, "mechanism": PUBLIC}, r"privacy.levels is missing; task 'analysts'"),
        ({"privacy": {"key_path": "direct"}}, r"key_path is for analysts with keys; give levels"),
        ({"trust": "central"}, r"trust is 'central'; "),
        ({"task": {"kind": "mean"}}, r"privacy.levels is .*task 'mean' has no analysts with keys"),
        (
            {"mechanism": {"kind": "hadamard-bit", "categories": 10}},
            r"mechanism.kind is 'hadamard-bit'; it draws no keys .*hadamard-cascade, ldp-rec",
        ),
        ({"mechanism": REC}, r"privacy.levels is .*mechanism 'ldp-rec' reads at inf, 1"),
        (
            {"mechanism": PUBLIC | {"epsilon_local": 0.5}},
            r"privacy.levels is .*reads at 3, 2, 0.5; give one of the two",
        ),
        (
            {"mechanism": {"kind": "hadamard-cascade", "categories": 1}},
            r"mechanism.categories is 1; it must be greater than or equal to 2",
        ),
        (promoted(analyst=3), r"promotions name analyst 3, but those with keys are 1 to 2"),
        (promoted(to=2), r"promotions take analyst 2 to level 2; it must be smaller"),
        (promoted(release=5), r"privacy.promotions.release is 5; releases are 0 to 4"),
        (promoted(release=0), r"privacy.promotions.0.release is 0"),
        (
            levels(3.0, 2.0, 1.0, promotions=[PROMOTION, PROMOTION | {"release": 2}]),
            r"promotions name an analyst twice",
        ),
        (
            {"trust": "local", **levels(2.0, 1.0, key_path="shuffler")},
            r"privacy.key_path is 'shuffler'; trust is local, so there is none; say direct",
        ),
        (
            {"population": {"clients": 40, "data": {"kind": "categorical", "categories": 12}}},
            r"client \d+ .*1[01]",
        ),
        (
            {
                "population": {
                    "clients": 40,
                    "data": {"kind": "drifting", "samples": 3, "first": [1, 1], "last": [1, 2]},
                }
            },
            r"clients hold 3 samples each for 5 releases",
        ),
    ],
)  # fmt: skip
def test_levels_that_cannot_be_are_refused_by_name(sections, said):
    with pytest.raises(InputError, match=said):
        analysts(**sections)


def test_the_command_line_refuses_them_with_exit_code_2(tmp_path):
    path = "scenarios/levels/fleet.yaml"
    given = ["run", path, "--set", "privacy.levels=[1.0, 2.0]", "--out", str(tmp_path / "run")]
    found = CliRunner().invoke(main, given)
    assert found.exit_code == 2 and "privacy.levels" in found.output
    assert "Traceback" not in found.output and not (tmp_path / "run").exists()


def test_a_resolved_file_is_read_back_the_same():
    base = analysts(mechanism=REC, **levels(math.inf, 1.0))
    again = parse(base.document())
    assert again.privacy.levels == (math.inf, 1.0) and again.document() == base.document()
    base = analysts(**levels(math.inf, 2.0, 1.0))  # which the mechanism has as well
    again = parse(base.document())
    assert bound_mechanism(again).levels == (math.inf, 2.0, 1.0)


def test_fewer_clients_than_groups_are_enough():
    """Groups are drawn at random, so that no group has to be filled (section 8.4)."""
    data = {"kind": "categorical", "categories": 10}
    assert analysts(population={"clients": 3, "data": data}).population.clients == 3
