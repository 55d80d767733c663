"""Stored results of long trainings say what their page says, and what is claimed of them."""

import json
import re

import pytest

from raydp_sim.chaos.plan import KINDS, planned
from raydp_sim.chaos.record import SCHEMA as KILLS
from raydp_sim.chaos.record import fates_of, tallies
from raydp_sim.cli.shipped import shipped
from raydp_sim.metrics import sketches
from raydp_sim.metrics.curves import reached, read_csv
from raydp_sim.metrics.trainings import SCHEMA, frontier, outcomes
from raydp_sim.scenario.document import read
from tests.docs.pages import PAGES, ROOT, blocks, call, shows

RESULTS = ROOT / "docs" / "results"
SHOWN = [block.partition("\n")[::2] for block in blocks("docs/results.md", "text")]


@pytest.mark.parametrize(("command", "lines"), SHOWN, ids=[command for command, _ in SHOWN])
def test_the_page_shows_what_the_stored_results_print(command, lines, monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    shows(lines, call(*command.removeprefix("$ raydp-sim ").split()).stdout)


def test_every_stored_result_is_on_the_page() -> None:
    stored = [path.name for path in RESULTS.iterdir()]
    assert stored and all(f"results/{name}" in PAGES["docs/results.md"] for name in stored)


@pytest.mark.parametrize("epsilon,printed,spread", [(1.4, 0.80, 0.018), (2.91, 0.90, 0.005)])
def test_figure_5a_holds(epsilon, printed, spread) -> None:
    """Accuracies of ten runs are printed with the spread of one: ours lie within two of it."""
    found = reached(read_csv(RESULTS / "e2.csv"), epsilon)
    assert found is not None and found.runs >= 3
    assert found.accuracy > printed - 2 * spread
    assert found.epsilon < epsilon / 7


def test_figure_5a_is_missed_by_gradients_that_are_scaled_down_as_a_whole() -> None:
    """At the same epsilon, by any bound."""
    clamped, radial = (read_csv(RESULTS / f"{name}.csv") for name in ("e2", "e2-radial"))
    for epsilon in (1.4, 2.91):
        first, second = reached(clamped, epsilon), reached(radial, epsilon)
        assert first is not None and second is not None
        assert (first.round, first.epsilon) == (second.round, pytest.approx(second.epsilon))
        assert second.accuracy < first.accuracy - 0.3


@pytest.mark.parametrize("epsilon,printed,spread", [(3.0, 0.8115, 0.007), (5.8, 0.897, 0.005)])
def test_figure_5b_holds(epsilon, printed, spread) -> None:
    """As in figure 5a."""
    found = reached(read_csv(RESULTS / "e3.csv"), epsilon)
    assert found is not None and found.runs >= 3
    assert found.accuracy > printed - 2 * spread
    assert found.epsilon < epsilon / 8


KINDS_PLAYED = {
    *("rinf", "vqsgd", "codebook", "sqkr", "l2", "linf"),
    *("private-sketch", "privunit", "central-gaussian"),
}


def stored(name):
    """What the runs of each setting came to."""
    return {one.setting: one for one in outcomes(read_csv(RESULTS / f"{name}.csv").cast(SCHEMA))}


def test_ninety_percent_at_epsilon_1_4_take_30_bits() -> None:
    """The seed prints 80 %."""
    found = stored("frontier")["codebook-1.4"]
    assert found.epsilon <= 1.4 and found.bits <= 30
    assert found.accuracy is not None and found.accuracy > 0.9
    first = stored("frontier")["rinf-1.4"]
    assert first.bits == 15 and 0.8 < (first.accuracy or 0.0) < found.accuracy


@pytest.mark.parametrize(("epsilon", "rounds"), [(1.4, 210), (2.91, 420), (5.8, 840)])
def test_three_mechanisms_are_the_frontier_at_every_epsilon(epsilon: float, rounds: int) -> None:
    """The longest of them is not told apart from a trusted server, by twice a run's deviation."""
    every = outcomes(read_csv(RESULTS / "frontier.csv").cast(SCHEMA))
    here = [one for one in every if one.setting.endswith(f"-{epsilon:g}")]
    whole = [one for one in here if one.rounds == rounds]
    assert all(one.epsilon <= epsilon and one.rounds <= rounds for one in here)
    assert {one.mechanism for one in here} == KINDS_PLAYED
    (central,) = (one for one in whole if one.mechanism == "central-gaussian")
    best = frontier([one for one in whole if one is not central])
    assert [one.mechanism for one in best] == ["vqsgd", "codebook", "linf"]
    assert [one.runs for one in best] == [3, 3, 3] and central.runs == 3
    apart = (central.accuracy or 0.0) - (best[-1].accuracy or 0.0)
    assert apart < 2.0 * max(central.spread or 0.0, best[-1].spread or 0.0)


def test_who_stays_away_costs_more_than_how_many_and_a_reserve_helps() -> None:
    found = stored("availability")
    assert all(one.epsilon == pytest.approx(2.0, rel=0.15) for one in found.values())
    accuracy = {name: one.accuracy or 0.0 for name, one in found.items()}
    assert accuracy["absence"] < min(accuracy[name] for name in accuracy if name != "absence")
    assert accuracy["dropout"] < accuracy["dropout-reserve"]
    assert found["night"].withheld > 0 and found["night-waits"].withheld == 0


def test_personal_models_are_better_than_a_common_one_that_bears_the_noise() -> None:
    """Table 4.2 has 93 % and 12 % at the least epsilon; what is proved is ten times as much."""
    e4, short = stored("e4"), stored("short")
    for personal, common in (
        (e4["e4-3.35"], e4["e4-fedavg-3.35"]),
        (short["e5-standin"], short["e5-fedavg-standin"]),
    ):
        assert (personal.accuracy or 0.0) > (common.accuracy or 0.0) + 0.3
        assert personal.alone is not None
    assert (e4["e4-3.35"].accuracy or 0.0) > 0.93 and e4["e4-3.35"].epsilon > 33.5


def test_settings_of_table_4_2_are_the_best_that_were_tried_or_not_told_apart() -> None:
    found = stored("e4-chosen")

    def best(start: str) -> float:
        tried = {name: one.accuracy for name, one in found.items() if name.startswith(start)}
        assert len(tried) >= 3
        return float(max(tried, key=lambda name: tried[name]).removeprefix(start))

    e4, fedavg, proved = (
        read(shipped()[f"learning/{name}"]) for name in ("e4", "e4-fedavg", "e4-proved")
    )
    assert best("e4-3.35-step-") == e4["task"]["step_sizes"][0]
    assert best("e4-fedavg-27.30-step-") == fedavg["task"]["step_size"]
    assert best("e4-proved-3.35-clip-") == proved["mechanism"]["radius"]
    assert best("e4-proved-27.30-clip-") == 0.1
    lower = found["e4-3.35-common-0.003"], found["e4-3.35-common-0.03"]
    seed = next(
        row["accuracy"]
        for row in read_csv(RESULTS / "e4-chosen.csv").to_pylist()
        if row["setting"] == "e4-3.35-step-0.1" and row["seed"] == 1
    )
    assert (
        e4["task"]["step_sizes"][1] == 0.01 and lower[0].accuracy - 0.001 < seed > lower[1].accuracy
    )


def test_one_gaussian_beats_noise_in_every_step_at_a_fraction_of_what_that_costs() -> None:
    """LeNet-5 on MNIST, at the epsilons that table 4.2 prints."""
    found = stored("e4")
    for printed in ("3.35", "13.16", "27.30"):
        steps, proved = found[f"e4-fedavg-{printed}"], found[f"e4-proved-{printed}"]
        assert steps.runs == proved.runs == 3
        assert (proved.accuracy or 0.0) > (steps.accuracy or 1.0)
        assert proved.epsilon <= float(printed) < steps.epsilon / 10.0


def test_on_the_stand_in_one_gaussian_beats_noise_in_every_step() -> None:
    """And personal models are no better than those that clients train alone."""
    found = stored("standins")
    for printed in (3.35, 13.16, 27.3):
        steps, proved, personal = (
            found[f"e4-{kind}standin-{printed:.2f}"] for kind in ("fedavg-", "proved-", "")
        )
        assert (proved.accuracy or 0.0) > (steps.accuracy or 1.0)
        assert proved.epsilon <= printed < 10.0 * printed < steps.epsilon
        assert (personal.accuracy or 1.0) < (personal.alone or 0.0)


def test_coins_do_as_a_cohort_of_the_same_size() -> None:
    """At round 60, where single runs of E2 differ by several points: within three deviations."""
    cohort, coins = reached(read_csv(RESULTS / "e2.csv"), 0.83), stored("short")["dss"]
    assert cohort is not None and cohort.round == coins.rounds == 60
    assert abs((coins.accuracy or 0.0) - cohort.accuracy) < 3.0 * cohort.spread
    assert coins.epsilon == pytest.approx(cohort.epsilon, rel=0.05)


def schemes(measure):
    """How schemes of sketching compare, by setting."""
    found = sketches.compared(read_csv(RESULTS / "sketches.csv").cast(sketches.SCHEMA), measure)
    assert all(len(one.values) == 5 for one in found)
    return {one.setting: one for one in found}


def test_projections_are_best_at_the_main_settings_and_iid() -> None:
    """004, figure 2.4; of regression by the error of its means."""
    loss, error = schemes("loss"), schemes("error")
    for task in ("power-iteration", "k-means"):
        for sizes in ((10, 102), (50, 20)):
            assert loss[sketches.Setting(task, "iid", *sizes)].holds == "yes"
    for sizes in ((10, 50), (50, 10)):
        setting = sketches.Setting("linear-regression", "iid", *sizes)
        assert error[setting].holds == "yes"
        assert loss[setting].holds == "close" and loss[setting].best == sketches.OURS


def test_projections_are_not_best_where_few_numbers_are_sent() -> None:
    found = [one for setting, one in schemes("distance").items() if setting.kept in (5, 10, 25, 51)]
    assert len(found) == 10
    for one in found:
        assert one.values["Wangni"][0] <= one.values[sketches.OURS][0] and one.holds != "yes"


def test_k_means_ends_above_its_start() -> None:
    rows = read_csv(RESULTS / "sketches.csv").to_pylist()
    loss = {
        (row["scheme"], row["iteration"]): row["loss"]
        for row in rows
        if (row["task"], row["split"], row["kept"]) == ("k-means", "iid", 102)
    }
    assert all(loss[name, 1] == pytest.approx(62, abs=0.7) for name, _ in loss)
    assert all(loss[name, 30] > 1.4 * loss[name, 1] for name, _ in loss)


def labels():
    """Accuracies of stored teachers, by (teachers, way, m)."""
    shown = json.loads(call("labels", str(RESULTS / "teachers.csv"), "--json").stdout)
    return {(line["setting"], line["way"], line["m"]): line for line in shown}


def test_gnmax_is_as_printed_and_the_best_function_beats_subsampling() -> None:
    found = labels()
    for (_, way, _), line in found.items():
        if way != "gnmax":
            continue
        cells = re.findall(r"([\d.]+) \(([\d.]+)\)", line["printed"])
        assert len(cells) == 3
        for mean, spread in cells:
            assert abs(line["accuracy"] - float(mean)) <= 2.0 * float(spread)
    for data in ("mnist", "fashion-mnist"):
        best, sub = (found[f"{data}-linear", way, 3] for way in ("optimised", "subsampling"))
        noisy = found[f"{data}-cnn-open", "gnmax", 3]
        assert best["accuracy"] > sub["accuracy"] > noisy["accuracy"] + 0.1


def test_independent_teachers_overstate_the_best_function() -> None:
    for (name, way, m), line in labels().items():
        if name.endswith("linear") and way == "optimised" and m and m > 1:
            assert line["independent"] > line["accuracy"] + 0.03


def test_a_campaign_of_kills_of_every_kind_needed_a_user_for_drivers_only() -> None:
    """A thousand kills, those that the page's line draws; of other kinds one in fifty may need a
    resume.
    """
    fates = fates_of(read_csv(RESULTS / "chaos.csv").cast(KILLS))
    line = r"chaos small\.yaml --nodes 3 --kills (\d+) --seed (\d+) --apart (\d+) --csv"
    (drawn,) = re.findall(line, (RESULTS.parent / "results.md").read_text())
    kills = [kill.kind for kill in planned(KINDS, *map(int, drawn))]
    assert [fate.killed for fate in fates] == kills
    found = tallies(fates)
    assert len(fates) == 1000 and set(found) == set(KINDS)
    counts = [tally.kills for tally in found.values()]
    assert max(counts) - min(counts) <= 1
    assert found["driver"].resumed == found["driver"].kills
    others = [fate for fate in fates if fate.killed != "driver"]
    assert sum(fate.resumed for fate in others) <= len(others) / 50
    # Restarting costs seconds, not minutes.
    assert all(tally.median_s < 10.0 for kind, tally in found.items() if kind != "driver")
