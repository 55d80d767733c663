"""A plain /metrics page with the last values of a run, for Prometheus and what reads its format."""

import math
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated, Any, ClassVar, Literal

import pyarrow as pa
from pydantic import Field

from raydp_sim.metrics.columns import STREAMS
from raydp_sim.metrics.described import RELEASED
from raydp_sim.metrics.sinks.base import Began, Outlet, Sink, numbers
from raydp_sim.metrics.streams import visibility

_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Prometheus(Sink):
    """Shows the last values of a run at 127.0.0.1:PORT/metrics, on this machine only.

    Fields:
        port: to listen at.
        shown: which streams: `released` to everyone, or `all`: truth, errors and what single
            analysts see too.
    """

    kind: ClassVar[str] = "prometheus"
    port: Annotated[int, Field(ge=1, le=65535)] = 9464
    shown: Literal["released", "all"] = "released"

    def opened(self, began: Began) -> Outlet:
        """Begin to listen."""
        return Page(str(began.about.get("run", "")), self.port, self.shown == "all")


class Page(Outlet):
    """The page, and the values on it."""

    def __init__(self, run: str, port: int, everything: bool) -> None:
        self.run, self.everything = run, everything
        self.values: dict[tuple[str, str], float] = {}
        self.counts: dict[str, int] = {}
        self._lock = threading.Lock()
        # The one address that needs no token: nobody else's machine reaches it.
        self.server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def rows(self, stream: str, batch: pa.RecordBatch) -> None:
        """Keep the last values, and count."""
        one_readers = b"reader" in (batch.schema.metadata or {})
        if not self.everything and (one_readers or visibility(batch.schema) != RELEASED):
            return
        found = numbers(batch)
        with self._lock:
            self.counts[stream] = self.counts.get(stream, 0) + batch.num_rows
            for _, values in found[-1:]:
                self.values.update({(stream, name): value for name, value in values.items()})

    def close(self) -> None:
        """Stop listening."""
        self.server.shutdown()
        self.server.server_close()

    def text(self) -> str:
        """Return the page, in Prometheus' text format."""
        with self._lock:
            values, counts = dict(self.values), dict(self.counts)
        run, lines = _escaped(self.run), []
        for (stream, name), value in sorted(values.items()):
            metric = f"raydp_sim_{stream}_{name}".replace("-", "_")
            known = STREAMS[stream].columns.get(name) if stream in STREAMS else None
            if known is not None:
                lines.append(f"# HELP {metric} {known.meaning}")
            lines += [f"# TYPE {metric} gauge", f'{metric}{{run="{run}"}} {_number(value)}']
        lines.append("# TYPE raydp_sim_rows_total counter")
        lines += [
            f'raydp_sim_rows_total{{run="{run}",stream="{_escaped(stream)}"}} {count}'
            for stream, count in sorted(counts.items())
        ]
        return "\n".join(lines) + "\n"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        page = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = self.path.partition("?")[0] == "/metrics"
                content = page.text().encode() if found else b"see /metrics\n"
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", _TYPE)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: Any) -> None:
                pass

        return Handler


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return repr(value) if math.isfinite(value) else "+Inf" if value > 0 else "-Inf"
