"""What a start waits for: nothing is imported before it is needed, and the benchmark adds up."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from raydp_sim.bench import startup
from raydp_sim.bench.startup import Row, document, importing, rows, steps
from raydp_sim.cli.bench import command
from raydp_sim.cli.bench_startup import startup_table

# What takes long to import, and is needed late, rarely or never.
HEAVY = {
    "http.server",
    "matplotlib",
    "pandas",
    "pyarrow.flight",
    "ray",
    "scipy.fft",
    "scipy.integrate",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.special",
    "scipy.stats",
    "starlette",
    "torch",
    "uvicorn",
}
IMPORTED = "import sys; print(*sorted(sys.modules))"
# Stopped where Ray would be started: after the scenario was read and checked, and its plan made.
CHECKED = """
import sys
from raydp_sim.cli.main import main
from raydp_sim.cli.display import Display
def phase(self, name):
    print(*sorted(sys.modules))
    raise KeyboardInterrupt
Display.phase = phase
main(["run", "quickstart", "--out", sys.argv[1]])
"""


def modules(code: str, *arguments: str, exit_code: int = 0) -> set[str]:
    """What a process of its own has imported when it prints that."""
    made = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert made.returncode == exit_code, made.stderr
    return set(made.stdout.split())


def ours(found: set[str]) -> set[str]:
    return {name for name in found if name.startswith("raydp_sim.")}


def test_help_imports_neither_numpy_nor_any_command():
    found = modules(
        "import atexit, sys; atexit.register(lambda: print(*sorted(sys.modules)))\n"
        "from raydp_sim.cli.main import main; main(['--help'])"
    )
    assert not found & (HEAVY | {"numpy", "pyarrow", "pydantic", "rich", "yaml"})
    allowed = {"raydp_sim.cli", "raydp_sim.cli.main", "raydp_sim.errors", "raydp_sim.version"}
    assert ours(found) == allowed


def test_run_is_imported_without_what_only_other_commands_or_its_end_need():
    found = modules(f"import raydp_sim.cli.run; {IMPORTED}")
    assert not found & HEAVY
    late = ("bench", "check", "figures", "stress", "sweep", "metrics.page", "metrics.plot")
    late += ("tasks.bandits", "tasks.items", "mechanisms.privunit")
    assert not [name for name in ours(found) if name[len("raydp_sim.") :].startswith(late)]


def test_until_ray_starts_only_the_kinds_of_the_scenario_are_imported(tmp_path):
    found = modules(CHECKED, str(tmp_path / "run"), exit_code=130)
    # The pre-flight accounts for the run, with roots and transforms of SciPy.
    assert not found & {"matplotlib", "pandas", "pyarrow.flight", "ray", "scipy.stats", "torch"}
    assert {"raydp_sim.mechanisms.linf", "raydp_sim.datasets.gaussian"} <= found
    others = {"raydp_sim.mechanisms.privunit", "raydp_sim.datasets.mnist", "raydp_sim.tasks.items"}
    assert not found & others


@pytest.mark.parametrize("actor", ["client", "shuffler", "aggregator", "ledger", "metrics"])
def test_actors_import_no_more_than_they_need(actor):
    found = modules(f"import raydp_sim.actors.{actor}; {IMPORTED}")
    assert not found & HEAVY
    assert not [name for name in ours(found) if name.startswith(("raydp_sim.run", "raydp_sim.cli"))]


def test_what_the_package_offers_is_there_in_any_order():
    code = (
        "import raydp_sim.run.play, raydp_sim\n"
        "from raydp_sim import RunResult, run, stream\n"
        "assert raydp_sim.run is run is raydp_sim.run.__globals__['run'], raydp_sim.run\n"
        "assert RunResult.__name__ == 'RunResult' and stream.__name__ == 'stream'\n"
        "assert not hasattr(raydp_sim, 'nothing')\n"
        "import raydp_sim.stream.batches; assert raydp_sim.stream is stream\n"
        "print('done')"
    )
    assert modules(code) == {"done"}
    assert modules("import raydp_sim; print(raydp_sim.run.__module__)") == {"raydp_sim.run.play"}


def test_steps_add_up_and_inline_starts_no_ray():
    moments = {"python": 1.1, "imported": 1.6, "placing clients": 2.6, "playing": 2.9}
    moments["released"] = 3.0
    taken = steps(1.0, moments | {"cpu": 9.0})
    assert sum(taken.values()) == pytest.approx(2.0) and "starting Ray" not in taken
    assert taken["reading, checking, pre-flight"] == pytest.approx(1.0)
    on_ray = steps(1.0, moments | {"starting Ray": 2.0})
    assert on_ray["starting Ray"] == pytest.approx(0.6) and len(on_ray) == 6


def test_imports_of_others_count_where_they_were_asked_for():
    told = (
        "import time: self [us] | cumulative | imported package\n"
        "import time:       100 |        100 | site\n"
        "import time:       200 |        200 |   click\n"
        "import time:       300 |        500 | raydp_sim.cli.main\n"
        "import time:       400 |        400 | raydp_sim\n"
    )
    assert importing(told) == pytest.approx(900e-6)


def test_the_whole_has_a_goal_and_a_median():
    found = list(rows("run, inline", [({"a": 1.0, "b": 0.2}, 3.0), ({"a": 2.0, "b": 0.1}, 1.0)]))
    assert [row.step for row in found] == ["a", "b", ""]
    assert found[-1] == Row("run, inline", "", pytest.approx(1.65), 2.0, 1.5)
    assert found[-1].met is False and found[0].met is None
    made = json.loads(json.dumps(document([Row("x", "", 1.0, None, 2.0)], {"cpu": "some"})))
    assert made["rows"][0]["met"] is True
    assert startup_table(found).row_count == 3


def test_a_start_that_fails_says_how(monkeypatch, tmp_path):
    monkeypatch.setattr(startup, "_SCENARIO", "no-such-scenario")
    with pytest.raises(startup.RunError, match=r"ended with 2: .*no such file"):
        startup.run(str(tmp_path), startup._INLINE)


def test_an_inline_start_is_measured_to_its_first_release(tmp_path):
    taken, cpu = startup.run(str(tmp_path), startup._INLINE)
    assert list(taken)[-1] == "first release" and all(seconds > 0.0 for seconds in taken.values())
    assert cpu is not None and cpu > 0.0


def test_help_shows_an_example():
    shown = CliRunner().invoke(command, ["startup", "--help"])
    assert shown.exit_code == 0 and "raydp-sim bench startup" in shown.output
