"""The routes of the page: files that everyone may have, and documents for whoever has a token."""

import asyncio
import contextlib
import json
import re
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from raydp_sim.errors import InputError
from raydp_sim.metrics.live.access import Grant, admitted
from raydp_sim.metrics.page import crowd, documents, downloads
from raydp_sim.metrics.page.crowd import Turns
from raydp_sim.metrics.page.door import DAMAGED, REFUSED, Door, cookie_name, packed
from raydp_sim.metrics.page.runs import Runs
from raydp_sim.metrics.page.seen import Seen
from raydp_sim.metrics.page.source import LIVE

STATIC = Path(__file__).parent / "static"
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_KINDS |= {".svg": "image/svg+xml", "": "text/plain"}
_PAUSE = 0.5  # seconds between two looks at whether there is something new
_BEAT = 15.0  # seconds after which a line without news says that the server is there
_REST = 1.0  # seconds that a page has to fetch the last of a run
_ANSWERS = 64  # that are kept, for several who look at the same
_COMPARED = 8
_LARGEST = 4096  # bytes of a request

Watched = Callable[[int], None]
"""Is told of one more, or one less, who looks."""
Epsilons = Callable[[Path], Any]
"""Returns the epsilon of every client of a run directory; what a scenario says is needed for it."""


class Page:
    """The page of some runs.

    Args:
        runs: to be shown.
        watched: is told who looks, so that a process does not end before they have seen the end.
        epsilons: works out what every client of a run directory has spent; None: nobody does.
    """

    def __init__(
        self, runs: Runs, watched: Watched | None = None, epsilons: Epsilons | None = None
    ) -> None:
        self.runs, self.watched, self.epsilons = runs, watched or (lambda change: None), epsilons
        self._answers: OrderedDict[tuple[Any, ...], bytes] = OrderedDict()
        self._lock = threading.Lock()  # documents are made one at a time: they share tables
        self._ledgers = threading.Lock()  # replaying one may take long; others do not wait for it
        self._keeping = threading.Lock()
        self._lines: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {}

    # What is answered, made in a thread of its own.

    def listed(self, grant: Grant) -> bytes:
        """Return the list of runs; of those that did not change, as it was made before."""
        rows = []
        for name in self.runs.names():
            if (found := self.runs.seen(name, grant)) is None:
                continue
            seen, _ = found
            version, key = seen.source.version(), (grant.digest, name)
            if self._lines.get(key, ("", {}))[0] != version:
                updated = _updated(seen.source.path)
                try:
                    line = documents.listed(seen, updated)
                except DAMAGED:
                    line = {**seen.about, "state": "damaged", "updated": round(updated, 3)}
                self._lines[key] = (version, line)
            rows.append(self._lines[key][1])
        return _json({"runs": rows, "scopes": list(grant.scopes), "reader": grant.reader})

    def run(self, seen: Seen, turns: Turns) -> bytes:
        """Return everything that the page of a run shows."""

        def made() -> dict[str, Any]:
            whole = seen.charged and self.epsilons is not None
            return {**documents.run(seen, turns), "ledger": whole}

        return self._kept(seen, "run", made)

    def ledger(self, seen: Seen) -> bytes:
        """Return what the clients have spent, as a panel; worked out anew when that has changed."""

        def made() -> dict[str, Any]:
            assert self.epsilons is not None
            try:
                return {"panel": crowd.spending(self.epsilons(seen.source.path))}
            except InputError:
                return {"panel": None}

        return self._kept(seen, "ledger", made, self._ledgers)

    def stream(self, seen: Seen, name: str) -> bytes:
        """Return a stream: its last rows, and lines."""
        return self._kept(seen, f"stream {name}", lambda: documents.stream(seen, name))

    def _kept(
        self, seen: Seen, what: str, make: Callable[[], dict[str, Any]], lock: Any = None
    ) -> bytes:
        key = (what, seen.name, seen.grant.digest, seen.source.version())
        with lock or self._lock:
            if (found := self._answers.get(key)) is None:
                found = _json(make())
                with self._keeping:
                    self._answers[key] = found
                    while len(self._answers) > _ANSWERS:
                        self._answers.popitem(last=False)
            return found


def app(page: Page, grants: Sequence[Grant], secure: bool = False) -> Starlette:
    """Return the application.

    Args:
        page: what there is to see.
        grants: of the tokens.
        secure: whether it is reached by TLS, so that cookies never travel in the clear.
    """
    runs = page.runs

    async def login(request: Request) -> Response:
        length = request.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > _LARGEST:
            raise HTTPException(413)
        try:
            token = str(json.loads(await request.body())["token"])
        except (ValueError, KeyError, TypeError):
            raise HTTPException(400) from None
        if admitted(grants, f"Bearer {token}") is None:
            return JSONResponse({"error": REFUSED}, 401)
        answer = JSONResponse({})
        answer.set_cookie(
            cookie_name(request.scope["server"][1]),
            packed(token),
            path="/",
            secure=secure,
            httponly=True,
            samesite="strict",
        )
        return answer

    async def logout(request: Request) -> Response:
        answer = JSONResponse({})
        answer.delete_cookie(cookie_name(request.scope["server"][1]), path="/")
        return answer

    async def listed(request: Request) -> Response:
        return _answered(await run_in_threadpool(page.listed, request.state.grant))

    async def run(request: Request) -> Response:
        seen, turns = await _seen(runs, request)
        return _answered(await run_in_threadpool(page.run, seen, turns))

    async def stream(request: Request) -> Response:
        seen, _ = await _seen(runs, request)
        name = await _open_stream(seen, request)
        return _answered(await run_in_threadpool(page.stream, seen, name))

    async def ledger(request: Request) -> Response:
        seen, _ = await _seen(runs, request)
        if not seen.charged or page.epsilons is None:
            raise HTTPException(404)
        return _answered(await run_in_threadpool(page.ledger, seen))

    async def compare(request: Request) -> Response:
        names = request.query_params.getlist("run")
        if not 2 <= len(names) <= _COMPARED:
            raise HTTPException(400)
        found = [await _seen(runs, request, name) for name in names]
        made = await run_in_threadpool(documents.compared, [seen for seen, _ in found])
        return _answered(_json(made))

    async def download(request: Request) -> Response:
        seen, _ = await _seen(runs, request)
        name = await _open_stream(seen, request)
        kind = request.query_params.get("format", "")
        if kind not in downloads.TYPES:
            raise HTTPException(400)
        rows = await run_in_threadpool(seen.table, name)
        pieces = downloads.as_csv(rows) if kind == "csv" else downloads.as_parquet(rows)
        return _attached(pieces, f"{seen.name}-{name}.{kind}", downloads.TYPES[kind])

    async def scenario(request: Request) -> Response:
        seen, _ = await _seen(runs, request)
        if (text := seen.scenario_text()) is None:
            raise HTTPException(404)
        return _attached(iter([text.encode()]), f"{seen.name}.yaml", "application/yaml")

    async def plot(request: Request) -> Response:
        seen, _ = await _seen(runs, request)
        if not documents.has_plot(seen):
            raise HTTPException(404)
        content = await run_in_threadpool((seen.source.path / "plot.png").read_bytes)
        return _attached(iter([content]), f"{seen.name}.png", "image/png")

    async def events(request: Request) -> Response:
        source = None
        if "run" in request.query_params:
            source = (await _seen(runs, request))[0].source
        lines = _events(page, source, request)
        return StreamingResponse(lines, media_type="text/event-stream")

    async def static(request: Request) -> Response:
        name = request.path_params.get("name") or "index.html"
        path = FILES.get(name)
        if path is None:
            raise HTTPException(404)
        # Looked at again every time: a new version of this package is seen at once.
        kind = _KINDS.get(path.suffix, "text/plain")
        headers = {"Cache-Control": "no-cache"}
        return FileResponse(path, media_type=kind, headers=headers)

    routes = [
        Route("/api/login", login, methods=["POST"]),
        Route("/api/logout", logout, methods=["POST"]),
        Route("/api/runs", listed),
        Route("/api/run", run),
        Route("/api/stream", stream),
        Route("/api/ledger", ledger),
        Route("/api/compare", compare),
        Route("/api/download", download),
        Route("/api/scenario", scenario),
        Route("/api/plot", plot),
        Route("/api/events", events),
        Route("/", static),
        Route("/{name:path}", static),
    ]
    return Starlette(routes=routes, middleware=[Middleware(Door, grants=list(grants))])


# By name, so that no path is ever made of what a browser asks for.
FILES = {path.relative_to(STATIC).as_posix(): path for path in STATIC.rglob("*") if path.is_file()}


async def _seen(runs: Runs, request: Request, name: str | None = None) -> tuple[Seen, Turns]:
    wanted = request.query_params.get("run", "") if name is None else name
    found = await run_in_threadpool(runs.seen, wanted, request.state.grant)
    if found is None:
        raise HTTPException(404)
    return found


async def _open_stream(seen: Seen, request: Request) -> str:
    name = request.query_params.get("stream", "")
    if name not in await run_in_threadpool(lambda: seen.schemas):
        raise HTTPException(404)
    return name


async def _events(page: Page, source: Any, request: Request) -> AsyncIterator[str]:
    """Yield a line whenever there is something new, and now and then one that says nothing."""
    page.watched(1)
    last, quiet = "", 0.0
    try:
        while not await request.is_disconnected():
            looked = page.runs.version if source is None else source.version
            # Before the version is looked at: of a run that has ended, all is there.
            state = None if source is None else source.state()
            version = await run_in_threadpool(looked)
            if version != last:
                last, quiet = version, 0.0
                yield f"event: news\ndata: {json.dumps({'version': version, 'state': state})}\n\n"
            elif quiet >= _BEAT:
                quiet = 0.0
                yield ": still here\n\n"
            if state is not None and state != LIVE:
                await asyncio.sleep(_REST)
                yield "event: end\ndata: {}\n\n"
                return
            await asyncio.sleep(_PAUSE)
            quiet += _PAUSE
    finally:
        page.watched(-1)


def _answered(content: bytes) -> Response:
    return Response(content, media_type="application/json")


def _attached(pieces: Any, name: str, kind: str) -> Response:
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", name)
    where = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
    return StreamingResponse(pieces, media_type=kind, headers={"Content-Disposition": where})


def _json(document: dict[str, Any]) -> bytes:
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode()


def _updated(path: Path) -> float:
    times = []
    for part in ("metrics/releases", "summary.json", "scenario.yaml"):
        with contextlib.suppress(OSError):
            times.append((path / part).stat().st_mtime)
    return max(times, default=0.0)
