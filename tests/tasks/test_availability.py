"""Training where clients stay away: whom it costs, in the direction that the stored table has."""

import numpy as np
import pytest

from raydp_sim.cli.shipped import shipped
from raydp_sim.datasets.labelled import Labelled
from raydp_sim.mechanisms import make
from raydp_sim.population.availability.adversarial import Adversarial
from raydp_sim.run.play import run
from raydp_sim.tasks.base import Setting
from raydp_sim.tasks.learning.sgd import CldpSgd


def test_those_of_the_lowest_labels_stay_away_first():
    pool, labels = np.zeros((4, 1), np.uint8), np.array([3, 0, 9, 1], np.uint8)
    data = Labelled(pool, labels, np.array([[0, 0], [1, 1], [2, 3]]), np.array([1, 1, 2]))
    mechanism = make("rinf", epsilon_local=1.0, dimension=1, radius=1.0)
    found = CldpSgd().influence(Setting(mechanism, 3, (1, 1), 1e-5), data, np.zeros(0, np.int64))
    assert found.tolist() == [-3.0, 0.0, -5.0]
    assert Adversarial(share=1 / 3).absent(found).tolist() == [False, True, False]


@pytest.mark.slow
def test_a_class_that_never_comes_costs_accuracy_and_so_does_every_other_report(tmp_path):
    """About 10 CPU-seconds; with a seed that is fixed."""
    away = {"kind": "adversarial", "share": 0.1}
    found = {}
    for name, people in {
        "all": {},
        "dropout": {"population__dropout": 0.5, "participation__deadline": 1.0},
        "absence": {"population__availability": away},
    }.items():
        result = run(
            shipped()["learning/digits"],
            out=tmp_path / name,
            placement__backend="inline",
            task__rounds=20,
            **people,
        )
        found[name] = result.summary["metrics"]["test_accuracy"]
        sent = result.summary["communication"]["reports"]
        assert sent == pytest.approx(20 * (1500 if name == "dropout" else 3000), rel=0.05)
    assert max(found["absence"], found["dropout"]) < found["all"] - 0.02, found
