"""Following a run over Arrow Flight: every row once, to those it is for, whatever others do."""

import contextlib
import socket
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from raydp_sim.errors import InputError, RunError
from raydp_sim.metrics import columns, connect, streams
from raydp_sim.metrics import read as read_runs
from raydp_sim.metrics.live.access import grant
from raydp_sim.metrics.live.feed import Feed, Serving
from raydp_sim.metrics.writer import Writer
from raydp_sim.privacy.ledger import store as ledger
from raydp_sim.run import Run, prepare, reopen
from tests.conftest import scenario
from tests.metrics.pages import certified
from tests.metrics.test_parts import row

# Who waits for rows waits inside of gRPC, where no signal is heard.
pytestmark = pytest.mark.timeout(120, method="thread")

ALL, ANALYST, ALICE = (f"the token of {who}, long enough" for who in ("all", "analysts", "alice"))
GRANTS = [grant(ALL), grant(ANALYST, ["released"]), grant(ALICE, ["released"], "alice")]
RELEASE = dict.fromkeys(streams.SCHEMAS["releases"].names, 0) | {"bound": "some"}


@contextlib.contextmanager
def served(folder: Path, **settings):
    made = Writer(folder)
    feed = Feed(made, Serving(grants=GRANTS, about={"run": "secret-name"}, **settings))
    try:
        yield made, feed
    finally:
        feed.close(over=True)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory):
    """A run that has made a few releases, with streams of every mark, and is never over."""
    with served(tmp_path_factory.mktemp("run") / "metrics") as (made, feed):
        for release in range(5):
            made.row("releases", {**RELEASE, "release": release})
            made.row("timing", row(release))
        for name, reader in (("of-alice", "alice"), ("of-bob", "bob")):
            rows = streams.released({"estimate": [0.5]}, reader=reader)
            made.batch(name, streams.keyed(rows, 0, 0))
        client = connect(feed.url, ALL)
        deadline = time.monotonic() + 20.0
        while "of-bob" not in client.streams() and time.monotonic() < deadline:
            time.sleep(0.01)
        yield made, feed.url


def read(following, count: int) -> list[int]:
    """Take so many rows, then stop following."""
    found: list[int] = []
    for batch in following:
        found += batch["release"].to_pylist()
        if len(found) >= count:
            following.close()
            return found
    return found


def test_a_token_sees_what_it_opens_and_nothing_else(live) -> None:
    _, url = live
    everything = connect(url, ALL).streams()
    assert {"releases", "timing", "ledger", "of-alice", "of-bob"} <= set(everything)
    assert everything["timing"].equals(streams.SCHEMAS["timing"], check_metadata=True)
    assert set(connect(url, ANALYST).streams()) == {"releases", "withheld"}
    assert set(connect(url, ALICE).streams()) == {"of-alice"}
    assert connect(url, ALICE).read("of-alice").num_rows == 1


@pytest.mark.parametrize(
    ("token", "stream"),
    [
        (ANALYST, "timing"),
        (ANALYST, "ledger"),
        (ANALYST, "participation"),
        (ANALYST, "truth"),
        (ALICE, "of-bob"),
        (ANALYST, "of-bob"),
        (ALICE, "releases"),
        (ALL, "no-such"),
    ],
)
def test_a_stream_that_a_token_does_not_open_is_not_there(live, token: str, stream: str) -> None:
    client = connect(live[1], token)
    for call in (client.follow, client.read):
        with pytest.raises(InputError, match=f"there is no stream '{stream}' for this token"):
            call(stream)


@pytest.mark.parametrize("header", [None, "", "Bearer", f"Bearer {ALL} ", ALL, f"Basic {ALL}"])
def test_without_a_right_token_nothing_is_told(live, header: str | None) -> None:
    client = flight.connect(live[1])
    headers = [] if header is None else [(b"authorization", header.encode())]
    options = flight.FlightCallOptions(headers=headers)
    ticket = flight.Ticket(b'{"stream": "releases", "start": 0, "follow": false}')
    path = flight.FlightDescriptor.for_path("secret-name", "releases")
    calls = (
        lambda: list(client.list_flights(options=options)),
        lambda: list(client.do_action(flight.Action("runs", b""), options)),
        lambda: list(client.list_actions(options)),
        lambda: client.get_flight_info(path, options),
        lambda: client.get_schema(path, options),
        lambda: client.do_get(ticket, options).read_all(),
    )
    said = set()
    for call in calls:
        # As an OSError where pyarrow does not look at the kind: in get_schema.
        with pytest.raises((flight.FlightUnauthenticatedError, OSError)) as caught:
            call()
        said.add(str(caught.value).split(". ")[0])
        assert "secret-name" not in str(caught.value)
    assert said == {"a valid bearer token is needed"}
    with pytest.raises(InputError, match="the token is not accepted"):
        connect(live[1], "another token")


def test_two_headers_are_as_bad_as_none(live) -> None:
    headers = [(b"authorization", f"Bearer {token}".encode()) for token in (ALL, ANALYST)]
    client = flight.connect(live[1])
    with pytest.raises(flight.FlightUnauthenticatedError):
        list(client.list_flights(options=flight.FlightCallOptions(headers=headers)))


def test_streams_are_followed_from_anywhere(live) -> None:
    made, url = live
    client = connect(url, ALL)
    assert read(client.follow("timing"), 5) == [0, 1, 2, 3, 4]
    assert read(client.follow("timing", 3), 2) == [3, 4]
    new = connect(url, ALL).follow("timing", "live")
    ahead = connect(url, ALL).follow("timing", 6)
    for release in (5, 6):
        made.row("timing", row(release))
    assert read(new, 2) == [5, 6] and new.offset == 7
    assert read(ahead, 1) == [6]
    # Late, when the first rows are in Parquet.
    made.flush()
    made.row("timing", row(7))
    assert read(client.follow("timing"), 8) == list(range(8))
    assert client.read("timing", 2)["release"].to_pylist() == [2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("start", [-1, "first", 0.5])
def test_a_start_that_means_nothing_is_named(live, start) -> None:
    with pytest.raises(InputError, match="give an offset of at least 0, or 'live'"):
        connect(live[1], ALL).follow("timing", start)


def test_nonsense_is_refused_and_changes_nothing(live) -> None:
    client = flight.connect(live[1])
    options = flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {ALL}".encode())])
    for ticket in (b"", b"[]", b"\xff", b'{"stream": "timing"}'):
        with pytest.raises(pa.ArrowException, match="a ticket is JSON"):
            client.do_get(flight.Ticket(ticket), options).read_all()
    assert connect(live[1], ALL).runs() == [{"run": "secret-name", "state": "live"}]


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=rf"metrics.serve is '127.0.0.1:{port}'.* in use"):
            Feed(Writer(tmp_path), Serving(port=port, grants=GRANTS))


def test_addresses_and_tokens_that_are_missing_are_named(monkeypatch) -> None:
    monkeypatch.delenv("RAYDP_SIM_TOKEN", raising=False)
    with pytest.raises(InputError, match="there is no token"):
        connect("grpc://127.0.0.1:1")
    with pytest.raises(InputError, match="write grpc://host:port"):
        connect("http://127.0.0.1:1", ALL)
    with pytest.raises(InputError, match="nobody answers there"):
        connect("grpc://127.0.0.1:1", ALL)


def test_tls_with_a_certificate_of_the_users(tmp_path: Path) -> None:
    tls = dict(zip(("certificate", "key"), certified(tmp_path), strict=True))
    certificate = tls["certificate"]
    with served(tmp_path / "metrics", **tls) as (made, feed):
        assert feed.url.startswith("grpc+tls://")
        made.row("timing", row(0))
        following = connect(feed.url, ALL, certificate).follow("timing")
        assert read(following, 1) == [0]
        with pytest.raises(InputError):  # whom nobody vouches for
            connect(feed.url, ALL)
        with pytest.raises(InputError):  # in the clear
            connect(feed.url.replace("+tls", ""), ALL)


ROWS, BATCH = 60, 20_000


def test_a_follower_that_never_reads_holds_up_nobody(tmp_path: Path) -> None:
    """Neither the run, nor its end, nor others, though it is sent more than anyone buffers."""
    with served(tmp_path / "metrics") as (made, feed):
        stuck, gone = (connect(feed.url, ALL).follow("errors") for _ in range(2))
        found: list[int] = []
        reading = threading.Thread(
            target=lambda: found.extend(read(connect(feed.url, ALL).follow("errors"), 1 << 40))
        )
        reading.start()
        for release in range(ROWS):
            rows = streams.simulation_only({"noise": [0.25] * BATCH})
            made.batch("errors", streams.keyed(rows, 0, release))
            made.flush_if_late()
            if release == 3:
                for following in (stuck, gone):
                    next(iter(following))  # and no more
                gone.close()
        made.flush()
        began = time.monotonic()
        feed.close(over=True)
        assert time.monotonic() - began < 60.0
        reading.join()
        assert found == [release for release in range(ROWS) for _ in range(BATCH)]
        assert feed.process.returncode == 0
        del stuck


def playing(folder: Path, rounds: int = 30, **placement: object) -> tuple[Run, list[str]]:
    tokens = folder.parent / "tokens.yaml"
    tokens.write_text(ALL)
    metrics = {"serve": True, "tokens": str(tokens)}
    places = {"backend": "inline", **placement}
    made = prepare(scenario(rounds=rounds, metrics=metrics, placement=places), out=folder)
    return made, watched(made)


def watched(made: Run) -> list[str]:
    urls: list[str] = []
    made.watcher.served = lambda served: urls.append(served.url)
    return urls


def test_a_whole_run_is_followed_as_it_is_written(tmp_path: Path) -> None:
    pytest.importorskip("pandas"), pytest.importorskip("polars")
    made, urls = playing(tmp_path / "run")
    rows = made.play()
    next(rows)
    client = connect(urls[0], ALL)
    (about,) = client.runs()
    assert about["run"] == "run" and about["rounds"] == 30 and about["state"] == "live"
    names = ("releases", "errors", "truth", "ledger", "participation", "withheld")
    followed = {name: connect(urls[0], ALL).follow(name) for name in names}
    tables: dict[str, object] = {}
    take = {"releases": "to_pandas", "errors": "to_polars"}

    def collect(name: str) -> None:
        tables[name] = getattr(followed[name], take.get(name, "to_table"))()

    threads = [threading.Thread(target=collect, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    assert len(list(rows)) == 29
    for thread in threads:
        thread.join()
    folder = tmp_path / "run"
    for name in ("truth", "withheld"):
        assert tables[name].equals(streams.read(folder / "metrics", name)), name
    assert tables["ledger"].equals(ledger.read(folder / "ledger"))
    for name in ("ledger", "participation"):
        assert tables[name].equals(read_runs(folder, name).drop_columns(["run"])), name
    assert tables["participation"].num_rows == tables["releases"]["participants"].sum()
    assert tables["releases"].equals(streams.read(folder / "metrics", "releases").to_pandas())
    assert tables["errors"]["release"].to_list() == list(range(30))
    assert ALL not in (folder / "scenario.yaml").read_text()
    assert all(ALL.encode() not in path.read_bytes() for path in folder.rglob("*.*"))


def test_a_follower_of_an_interrupted_run_goes_on_when_it_is_resumed(tmp_path: Path) -> None:
    made, urls = playing(tmp_path / "run", rounds=12)
    rows = made.play()
    for _ in range(5):
        next(rows)
    following = connect(urls[0], ALL).follow("releases")
    seen: list[int] = []
    with pytest.raises(RunError, match="the run was interrupted; when it is resumed, follow from"):
        for batch in following:
            seen += batch["release"].to_pylist()
            if len(seen) >= 5:
                rows.close()
    again = reopen(tmp_path / "run")
    urls = watched(again)
    rows = again.play()
    next(rows)
    rest = connect(urls[0], ALL).follow("releases", following.offset)
    later: list[int] = []
    thread = threading.Thread(
        target=lambda: later.extend(rest.to_table()["release"].to_pylist()), daemon=True
    )
    thread.start()
    list(rows)
    thread.join()
    assert seen + later == list(range(12))


def test_a_run_goes_on_when_its_server_dies(tmp_path: Path, monkeypatch) -> None:
    feeds: list[Feed] = []
    start = Feed._start
    monkeypatch.setattr(
        Feed, "_start", lambda self, *args: feeds.append(self) or start(self, *args)
    )
    made, _ = playing(tmp_path / "run", rounds=10)
    rows = made.play()
    next(rows)
    feeds[0].process.kill()
    assert len(list(rows)) == 9
    assert streams.read(tmp_path / "run" / "metrics", "releases").num_rows == 10


def test_streams_that_ship_and_never_come_are_empty(tmp_path: Path) -> None:
    made, urls = playing(tmp_path / "run", rounds=3)
    rows = made.play()
    next(rows)
    following: list[pa.Table] = []
    thread = threading.Thread(
        target=lambda: following.append(connect(urls[0], ALL).follow("learning").to_table())
    )
    thread.start()
    time.sleep(0.2)
    list(rows)
    thread.join()
    assert following[0].num_rows == 0
    assert following[0].schema.equals(columns.schema("learning"), check_metadata=True)
