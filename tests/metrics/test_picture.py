"""The picture of a run shows the answer, its error bars, what was withheld and who took part."""

import matplotlib

matplotlib.use("Agg")

import pyarrow as pa
import pytest
from matplotlib import pyplot as plt

from raydp_sim.metrics import panels, plot, streams
from raydp_sim.run import run
from tests.conftest import scenario

WORDS = {"kind": "categorical", "categories": 4}


@pytest.fixture
def axis():
    figure, axis = plt.subplots()
    yield axis
    plt.close(figure)


def played(folder, **sections):
    base = scenario(clients=100, rounds=3, **{"trust": "local", **sections})
    return run(base, out=folder / "run")


def labels(axis):
    return axis.get_legend_handles_labels()[1]


def test_a_histogram_has_bars_with_error_bars_and_the_truth(axis, tmp_path):
    result = played(
        tmp_path,
        population={"clients": 100, "data": WORDS},
        mechanism={"kind": "krr", "categories": 4, "epsilon_local": 1.0},
    )
    panels.draw_estimate(axis, result.run_dir / "metrics", categories=True)
    bars = [patch.get_height() for patch in axis.patches]
    assert bars == result.estimate.values.tolist()
    (truth,) = [line for line in axis.lines if line.get_label() == "truth"]
    assert truth.get_ydata().tolist() == result.truth.values.tolist()
    (segments,) = [lines.get_segments() for lines in axis.collections]
    reach = [segment[1][1] - segment[0][1] for segment in segments]
    assert reach == pytest.approx((4.0 * result.estimate.standard_error).tolist())


@pytest.mark.parametrize(
    ("dimension", "says"), [(1, "truth"), (6, "truth"), (80, "where the estimate is true")]
)
def test_vectors_are_drawn_against_the_truth(axis, tmp_path, dimension, says):
    data = {"kind": "gaussian", "dimension": dimension, "clip": 1.0}
    result = played(
        tmp_path,
        population={"clients": 100, "data": data},
        mechanism={"kind": "linf", "radius": 1.0, "epsilon_local": 2.0, "coordinates": 1},
    )
    panels.draw_estimate(axis, result.run_dir / "metrics", categories=False)
    assert says in labels(axis)
    assert any("noise, 2 standard errors" in label for label in labels(axis))


def test_withheld_batches_are_marked_and_the_client_charged_most_is_on_top(axis):
    columns = {"release": [0, 1, 4], "epsilon": [1.0, 2.0, 3.0], "epsilon_median": [1.0, 2.0, 3.0]}
    withheld = streams.SCHEMAS["withheld"].empty_table().select(["repetition", "release"])
    rows = pa.table({"repetition": [0, 0], "release": [2, 3]}, schema=withheld.schema)
    plot._spending(axis, pa.table(columns), rows)
    median, most, marks = axis.lines
    assert labels(axis) == ["median client", "client charged most", "withheld: batch too small (2)"]
    assert most.get_zorder() > median.get_zorder() and median.get_linewidth() > 2 * (
        most.get_linewidth()
    )
    assert marks.get_xdata().tolist() == [3, 4] and marks.get_marker() == "x"


def test_groups_are_side_by_side_with_what_they_spent(axis):
    row = {"clients": 5, "participations": 1.0, "never": 0.5, "squared_error": 0.25}
    spent = {"median": 0.5, "max": 1.5}
    groups = [
        {"group": name, "share_of_clients": 0.5, "share_of_reports": share, "epsilon": spent, **row}
        for name, share in (("new", 0.9), ("old", 0.1))
    ]
    panels.draw_groups(axis, {"by": "class", "groups": groups})
    assert [label.get_text() for label in axis.get_yticklabels()] == ["new", "old"]
    widths = [patch.get_width() for patch in axis.patches]
    assert widths == [0.5, 0.5, 0.9, 0.1]
    assert [text.get_text() for text in axis.texts] == [
        "epsilon 0.5 to 1.5\nsquared error 0.25"
    ] * 2


@pytest.mark.usefixtures("drawn")
def test_the_whole_picture_has_a_panel_for_each(tmp_path, monkeypatch):
    panels_made = []
    save = plt.Figure.savefig

    def look(figure, *given, **named):
        panels_made.extend(axis.get_title(loc="left") for axis in figure.axes)
        save(figure, *given, **named)

    monkeypatch.setattr(plt.Figure, "savefig", look)
    classes = [{"name": "new", "share": 1.0}, {"name": "old", "share": 1.0}]
    data = {"kind": "gaussian", "dimension": 6, "clip": 1.0}
    result = played(tmp_path, population={"clients": 100, "data": data, "classes": classes})
    assert (result.run_dir / "plot.png").stat().st_size > 10_000
    assert panels_made == [
        "What was learned",
        "How far off the estimate is",
        "What the clients have spent",
        "Who took part, by class",
    ]


@pytest.mark.parametrize("names", ["short", "names that are long"])
def test_no_legend_hides_what_is_drawn(axis, names):
    axis.plot([0, 1], [0, 1], label="one line")
    axis.set_xticks([0, 1], [names, names], rotation=90)
    axis.set_xlabel("category")
    plot._legend(axis)
    axis.figure.canvas.draw()
    legend = axis.get_legend().get_window_extent()
    assert legend.y1 <= axis.xaxis.get_tightbbox().y0 < axis.bbox.y0
