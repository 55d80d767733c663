"""Who plays without compiled kernels is told in one line; a wrong choice of them is refused."""

import pytest
from click.testing import CliRunner

from raydp_sim import kernels
from raydp_sim.cli.main import main
from raydp_sim.kernels.choice import Choice

PLAY = ("run", "quickstart", "--set", "placement.backend=inline", "--set", "task.rounds=1")


def test_a_run_without_compiled_kernels_says_so_in_one_line(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(kernels, "CHOICE", Choice("numpy", "kernels: NumPy's, since"))
    played = CliRunner().invoke(main, PLAY)
    assert played.exit_code == 0
    lines = [line for line in played.stderr.splitlines() if "kernels" in line]
    assert lines == ["kernels: NumPy's, since"] and "kernels" not in played.stdout
    shown = CliRunner().invoke(main, ["list"])
    assert shown.exit_code == 0 and "kernels: NumPy" not in shown.output


@pytest.mark.parametrize("arguments", [PLAY, ("list",)])
def test_kernels_that_are_not_there_are_refused(arguments, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    refused = "RAYDP_SIM_KERNELS is sse9; this machine has numpy"
    monkeypatch.setattr(kernels, "CHOICE", Choice("numpy", refused=refused))
    ended = CliRunner().invoke(main, arguments)
    assert (ended.exit_code, ended.stdout) == (2, "") and refused in ended.stderr
    assert "Traceback" not in ended.stderr
