"""The privacy calculator from the outside: formats, names, exit codes and known numbers."""

import json
import math
import re
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from raydp_sim.cli import account_plot
from raydp_sim.cli.main import main
from raydp_sim.cli.waiting import waiting
from raydp_sim.privacy.accountant import account
from raydp_sim.privacy.bound import Result
from raydp_sim.privacy.bounds.pld_clones import PldClones
from raydp_sim.privacy.composition.search import largest_within
from raydp_sim.privacy.events import SubsampledShuffle

DEFAULT = (
    "shuffle --epsilon0 2 --clients 1000000 --sampled 1000 --rounds 100000 --delta 1e-8".split()
)


def call(*arguments):
    return CliRunner().invoke(main, ["account", *arguments])


def answer(*arguments):
    result = call(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_the_default_call_holds_every_applicable_bound():
    found = answer(*DEFAULT)
    assert found["epsilon"]["rdp-subsampled"] == pytest.approx(1.0402, rel=1e-4)
    assert found["epsilon"]["fmt_closed+kov"] == pytest.approx(14.480, rel=1e-4)
    assert found["epsilon"]["fmt_numeric+kov"] == pytest.approx(2.5301, rel=1e-4)
    assert found["epsilon"]["pld-clones"] == pytest.approx(0.2083, rel=1e-3)
    assert {"balle+kov", "rdp-wbk", "pure"} <= set(found["epsilon"])
    assert set(found["status"]) == set(found["epsilon"])
    assert set(found["status"].values()) == {"proved", "heuristic"}
    proved = [found["epsilon"][name] for name, s in found["status"].items() if s == "proved"]
    assert found["best"] == {"bound": "pld-subsampled", "epsilon": min(proved)}
    assert proved == sorted(proved)
    assert "no randomizer" in found["refused"]["pld-variation"]
    assert "charged to every eligible client" in found["assumption"]
    assert all(math.isfinite(value) and value >= 0 for value in found["seconds"].values())


def test_all_clients_and_a_named_mechanism():
    found = answer(*"shuffle --epsilon0 0.5 --clients 1000000 --rounds 100000 --delta 1e-8".split())
    assert found["epsilon"]["rdp-upper1"] == pytest.approx(1.6398, rel=1e-4)
    assert found["epsilon"]["rdp-numeric"] == pytest.approx(1.1116, rel=1e-4)
    assert found["best"]["epsilon"] == pytest.approx(1.0156, rel=1e-3)
    named = answer(*DEFAULT, "--mechanism", "krr", "--alphabet", "100")
    assert named["best"]["bound"] == "pld-law"
    assert named["best"]["epsilon"] < 0.25 * named["epsilon"]["pld-clones"]
    assert "every client runs krr" in named["assumption"]


def test_the_table_is_sorted_and_says_for_whom_it_holds():
    text = call(*DEFAULT).stdout
    order = [text.index(f" {name} ") for name in ("pld-clones", "rdp-best", "rdp-wbk", "pure")]
    assert order == sorted(order)
    assert "refused" in text and "names no randomizer" in text
    said = " ".join(text.split())
    for part in ("against whoever sees", "replace one client's data", "in secret", "honest"):
        assert part in said
    coins = " ".join(call(*_coins()).stdout.split())
    assert "by its own secret coin" in coins and "rdp-mixture" in coins


def _coins():
    return "shuffle --epsilon0 1 --clients 1000 --self-sampling 0.1 --delta 1e-6".split()


def test_collusion_raises_epsilon():
    base = "shuffle --epsilon0 1 --clients 10000 --rounds 10 --delta 1e-6".split()
    honest = answer(*base)["best"]["epsilon"]
    half = answer(*base, "--honest-fraction", "0.5")
    assert half["best"]["epsilon"] > honest
    assert "at least 0.5 of the clients" in half["assumption"]


def test_divergences_of_one_shuffle():
    given = "rdp --epsilon0 0.1 --clients 10000 --alpha".split()
    for alpha, upper1, upper2, lower, efm19 in (
        (2, 2.2123e-6, 9.7798e-6, 1.0008e-6, 6.6004e-6),
        (100, 1.5335e-4, 2.4696e-4, 5.0038e-5, 3.3002e-4),
        (1000, 2.7038e-3, 2.4474e-3, 5.0008e-4, 3.3002e-3),
    ):
        found = answer(*given, str(alpha))["rdp"]
        assert found["upper1"] == pytest.approx(upper1, rel=1e-4)
        assert found["upper2"] == pytest.approx(upper2, rel=1e-4)
        assert found["lower"] == pytest.approx(lower, rel=1e-4)
        assert found["efm19"] == pytest.approx(efm19, rel=1e-4)
    names = "upper1 upper2 simple lower simple_lower numeric clones efm19 fmt23".split()
    small = answer(*given, "2")
    assert set(small["rdp"]) == set(names)
    assert small["status"]["lower"] == small["status"]["simple_lower"] == "lower"
    real = answer(*given, "2.5")
    assert "whole orders" in real["refused"]["upper1"] and "clones" in real["rdp"]


def test_divergences_of_a_sampled_shuffle():
    found = answer(*"rdp --epsilon0 1 --clients 1000000 --sampled 1000 --alpha 2".split())
    names = {"upper", "lower", "wbk", "wbk_naive", "poisson_zw", "poisson_mixture"}
    assert names <= set(found["rdp"])
    assert found["rdp"]["poisson_zw"] == pytest.approx(5.90305036100e-9, rel=1e-8)
    assert found["status"]["poisson_zw"] == "heuristic"
    assert "own coins" in found["note"]["poisson_mixture"]
    assert found["best"]["bound"] != "poisson_mixture"


@pytest.mark.parametrize("more", [[], ["--mechanism", "2rr"]])
def test_calibration_meets_its_target_when_evaluated_again(more):
    given = "--delta 1e-8 --clients 1000000 --sampled 1000 --rounds 1000".split()
    found = answer("calibrate", "--epsilon", "0.5", *given, *more)
    again = answer("shuffle", "--epsilon0", repr(found["epsilon0"]), *given, *more)
    assert again["best"] == {"bound": found["bound"], "epsilon": found["epsilon"]}
    assert 0.499 < found["epsilon"] <= 0.5


def test_a_calibration_is_said_in_words():
    given = "--epsilon 0.5 --delta 1e-6 --clients 30".split()
    assert "epsilon0 " in call("calibrate", *given).stdout


def test_the_central_model():
    given = "gaussian --noise-multiplier 1.1 --rounds 100 --delta 1e-5".split()
    all_of_it, sample = answer(*given), answer(*given, "--rate", "0.01")
    assert sample["best"]["epsilon"] < all_of_it["best"]["epsilon"]
    assert "add or remove" in sample["assumption"]
    assert "add or remove" not in all_of_it["assumption"]


@pytest.mark.parametrize("over", ["n", "T", "epsilon0"])
def test_a_picture_is_drawn(over, tmp_path, monkeypatch):
    monkeypatch.setattr(account_plot, "_POINTS", 4)
    path = tmp_path / "made.png"
    given = "shuffle --epsilon0 1 --clients 500 --sampled 20 --rounds 10 --delta 1e-5".split()
    result = call(*given, "--plot", str(path), "--over", over)
    assert result.exit_code == 0, result.stderr
    assert path.read_bytes().startswith(b"\x89PNG")
    assert str(path) in result.stdout.replace("\n", "")


SHUFFLE = {"--epsilon0": "1", "--clients": "100", "--delta": "1e-6"}


@pytest.mark.parametrize(
    ("command", "changed", "message"),
    [
        ("shuffle", {"--epsilon0": "-1"}, "--epsilon0 is -1.0; it must be > 0"),
        ("shuffle", {"--epsilon0": "nan"}, "--epsilon0 is nan; it must be > 0"),
        ("shuffle", {"--epsilon0": "1e9"}, "--epsilon0 is 1000000000.0; it must be at most 20"),
        ("shuffle", {"--clients": "0"}, "--clients is 0; it must be at least 1"),
        ("shuffle", {"--clients": "1.5"}, "--clients"),
        ("shuffle", {"--sampled": "200"}, "--sampled is 200; it must be at most --clients, 100"),
        ("shuffle", {"--sampled": "0"}, "--sampled is 0"),
        ("shuffle", {"--self-sampling": "1.5"}, "--self-sampling is 1.5"),
        ("shuffle", {"--self-sampling": "0.5", "--sampled": "5"}, "give it or --sampled"),
        ("shuffle", {"--rounds": "0"}, "--rounds is 0"),
        ("shuffle", {"--delta": "1"}, "--delta is 1.0; it must lie in (0, 1)"),
        ("shuffle", {"--delta": "0"}, "--delta is 0.0; it must lie in (0, 1)"),
        ("shuffle", {"--mechanism": "krr"}, "--alphabet is missing"),
        ("shuffle", {"--mechanism": "krr", "--alphabet": "1"}, "--alphabet is 1"),
        ("shuffle", {"--mechanism": "2rr", "--alphabet": "4"}, "--alphabet is 4; leave it out"),
        ("shuffle", {"--mechanism": "privunit"}, "--mechanism"),
        ("shuffle", {"--honest-fraction": "2"}, "--honest-fraction is 2.0"),
        ("shuffle", {"--over": "n"}, "--over is 'n'; it needs --plot"),
        ("shuffle", {"--plot": "a.pdf"}, "--plot is 'a.pdf'; its name must end in .png"),
        ("shuffle", {"--plot": "no/a.png"}, "--plot is 'no/a.png'"),
        ("rdp", {"--alpha": "1"}, "--alpha is 1.0; it must be > 1"),
        ("rdp", {"--alpha": "1e9"}, "--alpha is 1000000000.0; it must be at most 1e+06"),
        ("rdp", {"--alpha": "2", "--sampled": "101"}, "--sampled is 101"),
        ("calibrate", {"--epsilon": "0"}, "--epsilon is 0.0; it must be > 0"),
        ("gaussian", {"--noise-multiplier": "0"}, "--noise-multiplier is 0.0"),
        ("gaussian", {"--noise-multiplier": "1", "--rate": "0"}, "--rate is 0.0"),
    ],
)
def test_bad_values_name_the_option(command, changed, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    leave = {"rdp": {"--delta"}, "calibrate": {"--epsilon0"}, "gaussian": {"--epsilon0"}}
    leave["gaussian"] |= {"--clients"}
    given = {k: v for k, v in SHUFFLE.items() if k not in leave.get(command, set())} | changed
    result = call(command, *(word for pair in given.items() for word in pair))
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr and result.stdout == ""
    assert list(Path().iterdir()) == []


def test_an_impossible_target_says_what_to_do():
    result = call(*"calibrate --epsilon 1e-9 --delta 1e-12 --clients 2 --rounds 1000".split())
    assert result.exit_code == 2
    assert "--epsilon is 1e-09; no epsilon0" in result.stderr


def test_the_calculator_agrees_with_the_library():
    event = SubsampledShuffle(2.0, 10**6, 1000)
    found, table = answer(*DEFAULT)["epsilon"], account([(event, 10**5)], 1e-8)
    assert found == {line.name: line.value for line in table.lines if line.value is not None}


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_wrong_bound_is_named_and_nothing_is_printed(form, monkeypatch):
    monkeypatch.setattr(PldClones, "compute", lambda self, events, delta: Result(0.0))
    asked = "shuffle --epsilon0 6 --clients 10000 --sampled 1 --rounds 3 --delta 1e-8".split()
    result = call(*asked, *form)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith("raydp-sim: this is a bug in the bound pld-clones; nothing was")
    assert "epsilon 0 at delta 1e-08 for 3 x SubsampledShuffle" in result.stderr
    assert "Traceback" not in result.stderr
    target = "calibrate --epsilon 0.01 --clients 10000 --sampled 1 --rounds 3 --delta 1e-8".split()
    assert call(*target, *form).exit_code == 3


def test_counts_may_have_an_exponent():
    words = "account calibrate --epsilon 1 --delta 1e-6 --json --sampled 100 --clients".split()
    written, plain = (CliRunner().invoke(main, [*words, count]) for count in ("1e4", "10000"))
    assert written.exit_code == 0 and written.stdout == plain.stdout
    refused = CliRunner().invoke(main, [*words, "1.5"])
    assert refused.exit_code == 2 and "'1.5' is no whole number" in refused.stderr


def test_whoever_waits_for_a_calibration_sees_its_tries(capsys):
    document = {"mechanism": {"target": {"epsilon": 1.0}}}

    def slow(loss: float) -> float:
        time.sleep(0.02)
        return loss

    with waiting(document, ["mechanism.target.epsilon=2"], first=0.01, then=0.01):
        found = largest_within(slow, 1.0, 1e-3, 20.0)
    lines = capsys.readouterr().err.splitlines()
    assert found == pytest.approx(1.0, rel=1e-5)
    tries = (
        r"epsilon 2 of the whole run: try \d+, epsilon_local \S+ gives epsilon \S+, \d+ s so far"
    )
    assert re.search(tries, lines[-1])
