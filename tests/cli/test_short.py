"""A refusal stays short, however long the input that it quotes."""

import pytest
import yaml

from raydp_sim.cli.main import main

LONG = "x" * 20_000


def said(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert ended.value.code == 2
    return capsys.readouterr().err


DOCUMENT = {
    "name": "a",
    "population": {"clients": 10, "data": {"kind": "bernoulli", "probability": 0.5}},
    "mechanism": {"kind": "2rr", "epsilon_local": 1.0},
}


@pytest.mark.parametrize(
    "document",
    [
        {**DOCUMENT, LONG: 1},
        {**DOCUMENT, "trust": LONG},
        {**DOCUMENT, "mechanism": {"kind": LONG}},
        {**DOCUMENT, "mechanism": {"kind": f"{LONG}:Own"}},
        {**DOCUMENT, "population": {LONG: LONG}},
        {**DOCUMENT, "population": {"clients": 10, "data": {"kind": "file", "path": LONG}}},
        LONG,
    ],
    ids=["field", "value", "kind", "class", "fields", "path", "text"],
)
def test_of_a_file(document, tmp_path, capsys):
    path = tmp_path / "long.yaml"
    path.write_text(yaml.safe_dump(document))
    assert len(said(capsys, "validate", str(path))) < 1000


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", LONG),
        ("run", "quickstart", "--set", f"{LONG}=1"),
        ("run", "quickstart", "--set", LONG),
        ("run", "quickstart", "--seed", LONG),
        ("run", "quickstart", "--out", LONG),
        ("run", "quickstart", "--address", LONG),
        ("run", "quickstart", f"--{LONG}"),
        ("resume", LONG),
        ("sweep", "quickstart", "--over", LONG),
        (LONG,),
        (f"--{LONG}",),
    ],
    ids=lambda words: " ".join(word[:12] for word in words),
)
def test_of_the_command_line(arguments, capsys):
    last = said(capsys, *arguments).split("raydp-sim: ")[-1]
    assert len(last) < 1000
