"""The benchmark of sketching works on tiny sizes; how fast it is, it says itself."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from raydp_sim.bench.contenders import Floor
from raydp_sim.bench.sketching import FLOOR, SCHEMES, Row, Size, claims, growth, rows
from raydp_sim.bench.timed import document, timed
from raydp_sim.cli import bench_sketching
from raydp_sim.cli.main import main
from tests import sketching_floors


def test_every_scheme_is_measured_beside_its_floor():
    floor = Floor(FLOOR)
    try:
        found = list(rows(floor, sizes=(Size(4, 2, 512),), wide=(32, 64)))
    finally:
        floor.stop()
    assert len(found) == 2 * len(SCHEMES) + 2
    assert {row.case for row in found} == {
        "n=4, k=2, d=512",
        "n=50, k=20, d=32",
        "n=50, k=20, d=64",
    }
    assert all(row.seconds >= 0.0 and row.floor >= 0.0 and row.goal is None for row in found)
    assert set(claims(found)) >= {"004: it is faster to encode than Wangni"}


def made(proj, others=0.5):
    return [
        Row("n=50, k=20, d=1024", f"{s.name}: {w}", proj if s.kind == "rand-proj" else others, 0.1)
        for s in SCHEMES
        for w in ("encode", "decode")
    ]


def test_claims_hold_or_not():
    assert list(claims(made(0.2)).values()) == [False, True]
    assert list(claims(made(0.9)).values()) == [True, False]
    wide = [Row("n=50, k=20, d=4096", "Rand-Proj-Spatial(Avg): encode", 3.2, 0.1)]
    assert growth(made(0.2)) is None
    assert growth(made(0.2) + wide) == pytest.approx(2.0)
    assert list(claims(made(0.2) + wide).values())[-1] is False


def test_the_command_says_what_is_met(monkeypatch):
    slow = Row("n=1", "some: call", 0.07, 0.01, 0.06)
    monkeypatch.setattr(bench_sketching, "CASES", (lambda floor, say: iter([*made(0.2), slow]),))
    shown = CliRunner().invoke(main, ["bench", "sketching"])
    assert shown.exit_code == 0, shown.stderr
    for words in ("Wangni: encode", "< 60 NO", "slowest to decode: does NOT hold", "Wangni: holds"):
        assert words in shown.stdout
    found = json.loads(CliRunner().invoke(main, ["bench", "sketching", "--json"]).stdout)
    assert found["rows"][-1]["met"] is False
    assert document("x", [slow], {}, {})["rows"][0]["seconds"] == 0.07


def test_the_floor_does_the_same_work():
    turn = sketching_floors.transform(8)
    h = np.array([[(-1.0) ** (a & b).bit_count() for b in range(8)] for a in range(8)])
    np.testing.assert_allclose(turn(np.eye(8)), h)
    for kind in ("rand-k", "rand-proj", "wangni", "induced"):
        assert sketching_floors.encode(kind, 4, 16, 3)().shape == (3, 4)
        assert sketching_floors.decode(kind, 4, 16, 3)().shape == (16,)


def test_a_call_is_timed_after_one_that_is_not():
    called = []
    assert timed(lambda: called.append(1), repeats=3) >= 0.0
    assert len(called) == 4
