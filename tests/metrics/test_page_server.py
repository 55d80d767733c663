"""The server of the page: who is let in, what they get, and that nothing else gets out."""

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from raydp_sim.cli.main import main
from raydp_sim.errors import InputError
from raydp_sim.metrics import streams
from raydp_sim.metrics.live.access import VARIABLE
from raydp_sim.metrics.page import serving
from raydp_sim.metrics.page.answers import Page
from raydp_sim.metrics.page.door import HEADERS
from raydp_sim.metrics.page.runs import Runs
from raydp_sim.metrics.page.server import FILES, STATIC, app
from raydp_sim.run import prepare, run
from raydp_sim.run.presence import availability
from raydp_sim.run.spending import epsilons
from tests.actors.leveled import analysts
from tests.conftest import scenario, with_placement
from tests.metrics.pages import ALL, ANALYST, FIRST, GRANTS, HOSTILE, browser, certified

pytestmark = pytest.mark.timeout(120, method="thread")
PATHS = [
    "/api/runs",
    "/api/run?run=mean",
    "/api/run?run=no-such",
    "/api/stream?run=mean&stream=releases",
    "/api/compare?run=mean&run=levels",
    "/api/download?run=mean&stream=releases&format=csv",
    "/api/scenario?run=mean",
    "/api/plot?run=mean",
    "/api/availability?run=mean",
    "/api/events?run=mean",
    "/api/no-such",
    "/api/",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs")
    run(scenario(rounds=4), out=place / "mean")
    run(analysts(), out=place / "levels")
    run(scenario(rounds=1), out=place / HOSTILE)
    (place / "secret.txt").write_text("nobody may read this")
    return place


@pytest.fixture(scope="module")
def served(folder: Path):
    return app(Page(Runs(folder)), GRANTS)


def client(served, token: str | None = ALL):
    return browser(served, headers={} if token is None else {"authorization": f"Bearer {token}"})


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", f"Bearer {ALL} ", ALL, f"Basic {ALL}", "Bearer wrong"]
)
def test_without_a_right_token_nothing_is_told(served, header: str | None) -> None:
    given = {} if header is None else {"authorization": header}
    asking = browser(served, headers=given)
    answers = [asking.get(path) for path in PATHS]
    assert {answer.status_code for answer in answers} == {401}
    # Whether there is such a run, or any, cannot be told from the answer.
    assert len({(answer.content, answer.headers["content-type"]) for answer in answers}) == 1
    assert "mean" not in answers[0].text


def test_two_headers_are_as_bad_as_none(served) -> None:
    both = [("authorization", f"Bearer {token}") for token in (ALL, ANALYST)]
    assert browser(served).get("/api/runs", headers=both).status_code == 401


@pytest.mark.parametrize("path", ["/", "/app.js", "/style.css", "/no-such", "/api/runs"])
def test_every_answer_has_its_headers(served, path: str) -> None:
    for token in (None, ALL):
        answer = client(served, token).get(path)
        for name, value in HEADERS.items():
            assert answer.headers[name] == value, name
        assert "cache-control" in answer.headers and "server" not in answer.headers
    policy = HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy


def test_pages_have_no_scripts_or_styles_inside() -> None:
    page = (STATIC / "index.html").read_text()
    assert page.count("<script") == 1 and '<script type="module" src="app.js"></script>' in page
    assert "<style" not in page and "style=" not in page and "onclick" not in page
    own = [path for name, path in FILES.items() if name.endswith(".js") and "vendor" not in name]
    for path in own:
        code = path.read_text()
        for word in ("innerHTML", "outerHTML", "insertAdjacent", "eval(", "document.write", "http"):
            assert word not in code, (path.name, word)
    assert "MIT" in FILES["vendor/uplot/LICENSE"].read_text()


def test_files_load_nothing_from_elsewhere() -> None:
    for name, path in FILES.items():
        if name.endswith((".html", ".css")):
            assert "http" not in path.read_text() and "url(" not in path.read_text()


def test_signing_in_gives_a_cookie_that_scripts_cannot_read(served) -> None:
    asking = client(served, None)
    assert asking.post("/api/login", json={"token": "a wrong one"}).status_code == 401
    assert not asking.cookies
    answer = asking.post("/api/login", json={"token": ALL})
    said = answer.headers["set-cookie"].lower()
    assert "httponly" in said and "samesite=strict" in said and "secure" not in said
    assert asking.get("/api/runs").status_code == 200
    asking.post("/api/logout")
    assert asking.get("/api/runs").status_code == 401


def test_a_cookie_travels_by_tls_only_where_there_is_tls(folder: Path) -> None:
    asking = browser(app(Page(Runs(folder)), GRANTS, secure=True), base_url="https://testserver")
    said = asking.post("/api/login", json={"token": ALL}).headers["set-cookie"].lower()
    assert "; secure" in said


ODD = (b'{"token": "\\ud800 is half of a letter"}', b"[" * 4000)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"\xff", b'{"token"', b'{"other": 1}', b"x" * 9999, *ODD]
)
def test_a_login_that_is_none_is_refused(served, body: bytes) -> None:
    answer = client(served, None).post("/api/login", content=body)
    assert answer.status_code in (400, 413) and "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),  # a program
        ({"sec-fetch-site": "same-origin", "origin": "http://public.example"}, 200),  # a proxy
        ({"origin": "http://testserver"}, 200),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),  # another port of the same machine
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
    ],
)
def test_no_other_site_signs_anyone_in_or_out(served, headers: dict[str, str], status: int) -> None:
    asking = browser(served, headers=headers)
    for path in ("/api/login", "/api/logout"):
        answer = asking.post(path, json={"token": ALL})
        assert answer.status_code == status
        assert ("set-cookie" in answer.headers) == (status == 200)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8800", 200),
        ("127.0.0.1:9", 200),
        ("[::1]", 200),
        ("[::1]:8800", 200),
        ("evil.example", 421),
        ("evil.example:8800", 421),
        ("127.0.0.1.evil.example", 421),
        ("192.0.2.1", 421),
        ("", 421),
    ],
)
def test_a_page_for_this_machine_has_no_other_name(folder: Path, host: str, status: int) -> None:
    asking = client(app(Page(Runs(folder)), GRANTS, here=True))
    for path in ("/", "/api/runs"):
        answer = asking.get(path, headers={"host": host})
        assert answer.status_code == status, path
        assert answer.headers["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize("value", ["x", "%00", "a" * 9000, "=;=", "ü"])
def test_a_cookie_that_is_none_is_refused(served, value: str) -> None:
    headers = {"cookie": f"raydp-sim-80={value}".encode()}
    assert browser(served).get("/api/runs", headers=headers).status_code == 401


def test_runs_are_listed_with_their_names_as_they_are(served) -> None:
    found = client(served).get("/api/runs").json()
    assert [each["name"] for each in found["runs"]] == [HOSTILE, "levels", "mean"]
    answer = client(served).get("/api/run", params={"run": HOSTILE})
    assert answer.json()["name"] == HOSTILE and answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../mean", "mean/..", "/etc", "mean/metrics", "secret.txt", "mean\0"]
)
def test_names_that_are_no_run_are_not_there(served, name: str) -> None:
    asking = client(served)
    for path in ("run", "stream", "scenario", "plot", "events"):
        params = {"run": name, "stream": "releases"}
        assert asking.get(f"/api/{path}", params=params).status_code == 404, path
    for stream in ("../scenario.yaml", "..", "", "../../mean/metrics/releases"):
        params = {"run": "mean", "stream": stream, "format": "csv"}
        assert asking.get("/api/download", params=params).status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "/../server.py",
        "/%2e%2e/server.py",
        "/..%2fserver.py",
        "/vendor/../../server.py",
        "//etc/passwd",
        "/static/index.html",
        "/%00",
    ],
)
def test_files_outside_are_not_there(served, path: str) -> None:
    answer = client(served).get(path)
    assert answer.status_code == 404 and "import" not in answer.text


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_streams_are_taken_away(served, folder: Path, tmp_path: Path, kind: str) -> None:
    params = {"run": "mean", "stream": "releases", "format": kind}
    answer = client(served).get("/api/download", params=params)
    assert 'filename="mean-releases.' in answer.headers["content-disposition"]
    file = tmp_path / f"file.{kind}"
    file.write_bytes(answer.content)
    rows = pyarrow.csv.read_csv(file) if kind == "csv" else pq.read_table(file)
    whole = streams.read(folder / "mean" / "metrics", "releases")
    assert rows.column_names == whole.column_names and rows.num_rows == whole.num_rows
    params["format"] = "exe"
    assert client(served).get("/api/download", params=params).status_code == 400


def test_a_download_of_a_hostile_name_has_a_harmless_one(served) -> None:
    params = {"run": HOSTILE, "stream": "releases", "format": "csv"}
    said = client(served).get("/api/download", params=params).headers["content-disposition"]
    assert "<" not in said and "\n" not in said


@pytest.mark.parametrize(
    ("token", "stream", "there"),
    [
        (ALL, "errors", True),
        (ALL, "ledger", True),
        (ANALYST, "releases", True),
        (ANALYST, "errors", False),
        (ANALYST, "truth", False),
        (ANALYST, "ledger", False),
        (ANALYST, "participation", False),
        (FIRST, "releases", False),
    ],
)
def test_scopes_are_those_of_flight(served, token: str, stream: str, there: bool) -> None:
    params = {"run": "mean", "stream": stream, "format": "parquet"}
    for path in ("stream", "download"):
        answer = client(served, token).get(f"/api/{path}", params=params)
        assert answer.status_code == (200 if there else 404), path


def test_a_reader_opens_its_own_streams_alone(served) -> None:
    for stream, there in (("analyst-1", True), ("analyst-2", False), ("public", False)):
        params = {"run": "levels", "stream": stream}
        answer = client(served, FIRST).get("/api/stream", params=params)
        assert answer.status_code == (200 if there else 404), stream
    asking = client(served, FIRST)
    assert asking.get("/api/scenario?run=levels").status_code == 404
    assert asking.get("/api/plot?run=levels").status_code == 404


def test_the_scenario_for_all_has_no_seed_and_no_data(served) -> None:
    whole, part = (
        client(served, token).get("/api/scenario?run=mean").text for token in (ALL, ANALYST)
    )
    assert "seed: 11" in whole and "kind: gaussian" in whole
    assert "seed" not in part.replace("decoder: seed", "").replace("location: seed", "")
    assert "gaussian" not in part and "kind: linf" in part


def test_runs_are_compared(served) -> None:
    found = client(served).get("/api/compare?run=mean&run=levels").json()
    assert [each["name"] for each in found["runs"]] == ["mean", "levels"]
    for query in ("run=mean", "run=mean&run=no-such", "&".join(["run=mean"] * 9)):
        assert client(served).get(f"/api/compare?{query}").status_code in (400, 404)


def test_events_end_with_the_run_when_it_was_shown(served, monkeypatch) -> None:
    monkeypatch.setattr("raydp_sim.metrics.page.server._REST", 3600.0)
    assert client(served).get("/api/run?run=mean").status_code == 200
    with client(served).stream("GET", "/api/events?run=mean") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = list(answer.iter_lines())
    assert lines[0] == "event: news" and '"state": "over"' in lines[1] and "event: end" in lines


def test_whoever_looks_and_is_answered_is_counted(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr("raydp_sim.metrics.page.server._PAUSE", 0.01)
    monkeypatch.setattr("raydp_sim.metrics.page.server._REST", 0.05)
    looking, answers = list[int](), list[int]()
    page = Page(Runs(folder), watched=looking.append, answering=answers.append)
    asking = client(app(page, GRANTS))
    assert "event: end" in asking.get("/api/events?run=mean").text
    assert looking == [1, 0, 0, 0, 0, 0, -1] and answers == []
    asking.get("/api/run?run=mean"), asking.get("/api/run?run=none")
    assert answers == [1, -1, 1, -1]


def test_a_resumed_run_is_shown_without_what_it_dropped(tmp_path: Path) -> None:
    rows = prepare(scenario(rounds=6), out=tmp_path / "run").play()
    for _ in range(3):
        next(rows)
    asking = client(app(Page(Runs(tmp_path)), GRANTS))
    live = asking.get("/api/run?run=run").json()
    assert live["state"] == "live"
    rows.close()
    assert asking.get("/api/runs").json()["runs"][0]["state"] == "interrupted"
    result = CliRunner().invoke(main, ["resume", str(tmp_path / "run")])
    assert result.exit_code == 0, result.output
    over = asking.get("/api/run?run=run").json()
    assert over["state"] == "over" and over["done"] == 6
    fresh = client(app(Page(Runs(tmp_path)), GRANTS)).get("/api/run?run=run").json()
    assert over["panels"] == fresh["panels"]


def test_what_clients_have_spent_is_worked_out_from_the_ledger(folder: Path) -> None:
    made = app(Page(Runs(folder), epsilons=epsilons), GRANTS)
    found = client(made).get("/api/ledger?run=mean").json()["panel"]
    spent = epsilons(folder / "mean")
    summary = json.loads((folder / "mean" / "summary.json").read_text())
    assert spent.max() == pytest.approx(summary["privacy"]["per_client"]["max"])
    assert sum(found["data"][1]) == len(spent) == 200
    assert client(made, ANALYST).get("/api/ledger?run=mean").status_code == 404
    assert client(made).get("/api/run?run=mean").json()["ledger"] is True


NIGHTS = {"kind": "diurnal", "low": 0.0, "high": 1.0, "peak": 2.0, "zones": [0.0, 12.0]}


def test_who_is_available_is_worked_out_from_the_scenario(folder: Path, tmp_path: Path) -> None:
    """With these chances, at 2 and at 14 o'clock everyone of one zone is there and none else."""
    data = {"kind": "gaussian", "dimension": 6, "clip": 1.0}
    population = {"clients": 400, "data": data, "availability": NIGHTS}
    run(scenario(rounds=2, population=population), out=tmp_path / "nights")
    names, shares = availability(tmp_path / "nights", np.array([2.0, 14.0]) * 3600.0)
    assert names == ("zone-0", "zone-1") and shares.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert availability(folder / "mean", np.array([0.0])) is None  # where everyone always is
    made = app(Page(Runs(tmp_path), presence=availability), GRANTS)
    found = client(made).get("/api/availability?run=nights").json()["panel"]
    assert found["marks"] == ["simulation-only"] and found["y"]["names"] == list(names)
    assert client(made).get("/api/run?run=nights").json()["availability"] is True
    assert client(made, ANALYST).get("/api/availability?run=nights").status_code == 404
    assert client(made, ANALYST).get("/api/run?run=nights").json()["availability"] is False


def test_a_damaged_run_hides_no_other(tmp_path: Path) -> None:
    for name in ("fine", "broken"):
        run(scenario(rounds=2), out=tmp_path / name)
    for path in (tmp_path / "broken" / "metrics" / "releases").iterdir():
        path.write_bytes(b"nothing")
    asking = client(app(Page(Runs(tmp_path)), GRANTS))
    states = {each["name"]: each["state"] for each in asking.get("/api/runs").json()["runs"]}
    assert states == {"fine": "over", "broken": "damaged"}
    answer = asking.get("/api/run?run=broken")
    assert answer.status_code == 500 and answer.json() == {"error": "the run cannot be read"}
    assert answer.headers["Content-Security-Policy"] == HEADERS["Content-Security-Policy"]


def test_the_page_of_a_run_has_rows_before_they_are_in_parquet(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(ALL)
    metrics = {"serve": True, "tokens": str(tokens)}
    base = with_placement(scenario(rounds=5, metrics=metrics), 2)
    made, pages = prepare(base, out=tmp_path / "run"), []
    made.watcher.served = lambda served: pages.append(served.page)
    rows = made.play()
    for _ in range(3):
        next(rows)
    deadline, found = time.monotonic() + 90, {"done": 0}
    while found["done"] < 3 and time.monotonic() < deadline:
        asked = Request(f"{pages[0]}api/run?run=run", headers={"authorization": f"Bearer {ALL}"})
        with urlopen(asked, timeout=90) as answer:  # which waits until the page is there
            found = json.load(answer)
    assert found["done"] == 3 and found["state"] == "live" and found["ledger"] is False
    with pytest.raises(HTTPError, match="401") as refused:
        urlopen(f"{pages[0]}api/run?run=run", timeout=90)
    refused.value.close()
    assert len(list(rows)) == 2
    spent = streams.read(tmp_path / "run" / "metrics", "releases")["epsilon"].to_pylist()
    assert found["spent"]["epsilon"] == spent[2]


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=rf"--at is '127.0.0.1:{port}'; .*in use"):
            serving.bound("127.0.0.1", port, "--at")
        metrics = {"serve": True, "page": f"127.0.0.1:{port}"}
        with pytest.raises(InputError, match=rf"metrics.page is '127.0.0.1:{port}'; .*in use"):
            next(prepare(scenario(metrics=metrics), out=tmp_path / "run").play())
    assert not (tmp_path / "run").exists()


def test_the_page_by_tls(folder: Path, tmp_path: Path) -> None:
    certificate, key = certified(tmp_path)
    with serving.bound("127.0.0.1", 0, "--at") as listening:
        server = serving.Server(listening, Runs(folder), GRANTS, certificate, key)
        url = serving.address("127.0.0.1", listening.getsockname()[1], secure=True)
        thread = server.start()
        asked = Request(f"{url}api/runs", headers={"authorization": f"Bearer {ALL}"})
        vouched = ssl.create_default_context(cafile=certificate)
        with urlopen(asked, timeout=90, context=vouched) as answer:
            assert len(json.load(answer)["runs"]) == 3
        body = json.dumps({"token": ALL}).encode()
        with urlopen(f"{url}api/login", body, timeout=90, context=vouched) as answer:
            assert "; secure" in answer.headers["set-cookie"].lower()
        with pytest.raises(URLError, match="CERTIFICATE_VERIFY_FAILED"):  # nobody vouches for it
            urlopen(asked, timeout=90)
        with pytest.raises((OSError, HTTPException)):  # in the clear
            urlopen(url.replace("https", "http"), timeout=90)
        server.stop()
        thread.join()


def command(*arguments: str) -> str:
    result = CliRunner().invoke(main, ["serve", *arguments])
    assert result.exit_code == 2, result.output
    return result.stderr


def test_what_cannot_be_served_is_named(tmp_path: Path) -> None:
    assert "there is no such folder" in command(str(tmp_path / "none"))
    assert "--at is 'nowhere'; host:port" in command(str(tmp_path), "--at", "nowhere")
    assert "go together" in command(str(tmp_path), "--key", "a.pem")
    missing = ("--key", "a.pem", "--certificate", "b.pem")
    assert "--certificate is 'b.pem'; there is no such file" in command(str(tmp_path), *missing)
    for name in ("a.pem", "b.pem"):
        (tmp_path / name).write_text("nothing")
    files = ("--key", str(tmp_path / "a.pem"), "--certificate", str(tmp_path / "b.pem"))
    assert "is not valid PEM" in command(str(tmp_path), *files)
    (tmp_path / "tokens").write_text("short")
    assert "fewer than 16" in command(str(tmp_path), "--tokens", str(tmp_path / "tokens"))


def test_without_the_extra_it_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_NEEDED", ("no_such_package",))
    said = command(str(tmp_path))
    assert "pip install 'raydp-sim[serve]'" in said and said.count("\n") == 1
    metrics = {"serve": True, "page": "127.0.0.1:0"}
    with pytest.raises(InputError, match=r"metrics.page is .*raydp-sim\[serve\]"):
        next(prepare(scenario(metrics=metrics), out=tmp_path / "run").play())


def test_without_the_extra_a_run_is_served_without_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "_NEEDED", ("no_such_package",))
    inline = ("--set", "placement.backend=inline", "--set", "task.rounds=2")
    arguments = ["run", "quickstart", "--serve", *inline, "--out", str(tmp_path / "run")]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert "grpc://127.0.0.1:" in result.output and "page at" not in result.output
    assert result.output.count("pip install 'raydp-sim[serve]'") == 1


def _heeds_ctrl_c() -> None:
    """Undo what whoever started the tests in the background did to all of their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_the_command_says_where_and_ends_with_ctrl_c(folder: Path) -> None:
    command = [sys.executable, "-m", "raydp_sim", "serve", str(folder)]
    alone = {name: value for name, value in os.environ.items() if name != VARIABLE}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=alone, preexec_fn=_heeds_ctrl_c
    ) as process:
        assert process.stdout is not None
        first, *tokens = (process.stdout.readline() for _ in range(3))
        assert first.startswith("page at http://127.0.0.1:")
        assert all(line.strip().startswith("token for ") for line in tokens)
        process.send_signal(2)
        assert process.wait(60) == 0
