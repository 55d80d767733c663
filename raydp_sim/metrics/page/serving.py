"""Serving the page: a socket first, so that its port is known, then the server in a thread."""

import contextlib
import importlib.util
import ipaddress
import os
import socket
import threading
from collections.abc import Sequence
from typing import Any

from raydp_sim.errors import InputError
from raydp_sim.metrics.live.access import Grant
from raydp_sim.metrics.page.runs import Runs

MISSING = "the page needs starlette and uvicorn: pip install 'raydp-sim[serve]'"
_NEEDED = ("starlette", "uvicorn")
_NICE = 5


def available() -> bool:
    """Say whether what the page needs is installed."""
    return all(importlib.util.find_spec(name) is not None for name in _NEEDED)


def bound(host: str, port: int, field: str) -> socket.socket:
    """Return a socket that listens.

    Args:
        host: to listen at.
        port: to listen at; 0 takes a free one.
        field: of the scenario or command line, to be named where nothing can listen there.

    Raises:
        InputError: names the field and the address.
    """
    name = host.removeprefix("[").removesuffix("]")
    try:
        family = socket.AF_INET6 if ":" in name else socket.AF_INET
        made = socket.create_server((name, port), family=family, backlog=128)
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(f"{field} is '{host}:{port}'; {why}: give another address") from None
    return made


class Server:
    """The page, on a socket, with or without TLS.

    Args:
        listening: the socket.
        runs: to be shown.
        grants: of the tokens.
        certificate, key: PEM files; None: no TLS.
        hooks: the others of `answers.Page`.
    """

    def __init__(
        self,
        listening: socket.socket,
        runs: Runs,
        grants: Sequence[Grant],
        certificate: str | None = None,
        key: str | None = None,
        **hooks: Any,
    ) -> None:
        # Only for whoever serves: importing these takes a moment, and they may not be there.
        import uvicorn

        from raydp_sim.metrics.page.answers import Page
        from raydp_sim.metrics.page.server import app

        # Listening at every address, ours may have any name.
        here = ipaddress.ip_address(listening.getsockname()[0]).is_loopback
        made = app(Page(runs, **hooks), grants, secure=certificate is not None, here=here)
        config = uvicorn.Config(
            made,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            ssl_certfile=certificate,
            ssl_keyfile=key,
            limit_concurrency=256,
            timeout_graceful_shutdown=1,
        )
        config.load()  # so that a certificate that is none is noticed here
        self._listening, self._server = listening, uvicorn.Server(config)

    def run(self) -> None:
        """Serve until told to stop; in the main thread Ctrl-C does so."""
        self._server.run(sockets=[self._listening])

    def start(self) -> threading.Thread:
        """Serve in a thread of its own."""
        thread = threading.Thread(target=self.serve_beside, daemon=True)
        thread.start()
        return thread

    def serve_beside(self) -> None:
        """Serve in this thread, which is not the main one, and let others go first."""
        # On Linux this is of the thread alone, and of those that it starts.
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        with contextlib.suppress(SystemExit):
            self.run()

    def stop(self) -> None:
        """Let the thread end."""
        self._server.should_exit = True


def address(host: str, port: int, secure: bool) -> str:
    """Return what is typed into a browser.

    Example:
        >>> address("127.0.0.1", 8800, secure=False)
        'http://127.0.0.1:8800/'
    """
    return f"http{'s' if secure else ''}://{host}:{port}/"
