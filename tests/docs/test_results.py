"""Stored curves of long trainings say what their page says, and what the papers claim."""

import pytest

from raydp_sim.metrics.curves import reached, read_csv
from tests.docs.pages import ROOT, blocks, call, shows


def test_the_page_shows_what_the_stored_curves_print(monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    (shown,) = blocks("docs/results.md", "text")
    command, _, lines = shown.partition("\n")
    shows(lines, call(*command.removeprefix("$ raydp-sim ").split()).stdout)


@pytest.mark.parametrize("epsilon,printed,spread", [(1.4, 0.80, 0.018), (2.91, 0.90, 0.005)])
def test_figure_5a_holds(epsilon, printed, spread) -> None:
    """Accuracies of ten runs are printed with the spread of one: ours lie within two of it."""
    found = reached(read_csv(ROOT / "docs" / "results" / "e2.csv"), epsilon)
    assert found is not None and found.runs >= 2
    assert found.accuracy > printed - 2 * spread
    assert found.epsilon < epsilon / 7
