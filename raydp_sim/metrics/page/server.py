"""The routes of the page: files that everyone may have, and documents for whoever has a token."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
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

from raydp_sim.metrics.live.access import Grant, admitted
from raydp_sim.metrics.page import documents, downloads
from raydp_sim.metrics.page.answers import Page, dumped
from raydp_sim.metrics.page.door import REFUSED, Door, cookie_name, packed
from raydp_sim.metrics.page.runs import Runs
from raydp_sim.metrics.page.seen import Seen
from raydp_sim.metrics.page.source import LIVE
from raydp_sim.metrics.page.turns import Turns

STATIC = Path(__file__).parent / "static"
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_KINDS |= {".svg": "image/svg+xml", "": "text/plain"}
_PAUSE = 0.5  # seconds between two looks at whether there is something new
_BEAT = 15.0  # seconds after which a line without news says that the server is there
_REST = 6.0  # seconds that a page has to fetch the last of a run
_COMPARED = 8
_LARGEST = 4096  # bytes of a request


def app(page: Page, grants: Sequence[Grant], secure: bool = False, here: bool = False) -> Starlette:
    """Return the application.

    Args:
        page: what there is to see.
        grants: of the tokens.
        secure: whether it is reached by TLS, so that cookies never travel in the clear.
        here: whether only this machine is served, and so only under its own names.
    """
    runs = page.runs

    async def login(request: Request) -> Response:
        length = request.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > _LARGEST:
            raise HTTPException(413)
        try:
            token = str(json.loads(await request.body())["token"])
            token.encode()  # half of a surrogate pair is no text
        except (ValueError, KeyError, TypeError, RecursionError):
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

    async def availability(request: Request) -> Response:
        seen, _ = await _seen(runs, request)
        if not page.models(seen):
            raise HTTPException(404)
        return _answered(await run_in_threadpool(page.availability, seen))

    async def compare(request: Request) -> Response:
        names = request.query_params.getlist("run")
        if not 2 <= len(names) <= _COMPARED:
            raise HTTPException(400)
        found = [await _seen(runs, request, name) for name in names]
        made = await run_in_threadpool(documents.compared, [seen for seen, _ in found])
        return _answered(dumped(made))

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
        seen = (await _seen(runs, request))[0] if "run" in request.query_params else None
        lines = _events(page, seen, request)
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
        Route("/api/availability", availability),
        Route("/api/compare", compare),
        Route("/api/download", download),
        Route("/api/scenario", scenario),
        Route("/api/plot", plot),
        Route("/api/events", events),
        Route("/", static),
        Route("/{name:path}", static),
    ]
    door = Middleware(Door, grants=list(grants), answering=page.answering, here=here)
    return Starlette(routes=routes, middleware=[door])


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


async def _events(page: Page, seen: Seen | None, request: Request) -> AsyncIterator[str]:
    """Yield a line whenever there is something new, and now and then one that says nothing."""
    page.watched(1)
    last, quiet = "", 0.0
    try:
        while not await request.is_disconnected():
            # Before the version is looked at: of a run that has ended, all is there.
            state = None if seen is None else seen.source.state()
            looked = page.runs.version if seen is None else seen.source.version
            version = await run_in_threadpool(looked)
            if version != last:
                last, quiet = version, 0.0
                yield f"event: news\ndata: {json.dumps({'version': version, 'state': state})}\n\n"
            elif quiet >= _BEAT:
                quiet = 0.0
                yield ": still here\n\n"
            if seen is not None and state != LIVE:
                await _rest(page, seen, version)
                yield "event: end\ndata: {}\n\n"
                return
            await asyncio.sleep(_PAUSE)
            quiet += _PAUSE
    finally:
        page.watched(-1)


async def _rest(page: Page, seen: Seen, version: str) -> None:
    """Wait a while for the page to be shown the last of a run."""
    for _ in range(int(_REST / _PAUSE)):
        if page.shown(seen, version):
            return
        page.watched(0)
        await asyncio.sleep(_PAUSE)


def _answered(content: bytes) -> Response:
    return Response(content, media_type="application/json")


def _attached(pieces: Any, name: str, kind: str) -> Response:
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", name)
    where = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
    return StreamingResponse(pieces, media_type=kind, headers={"Content-Disposition": where})
