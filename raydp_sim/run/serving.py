"""Where a run is served, and what a person has to know to follow it."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from raydp_sim.errors import InputError, bad_field
from raydp_sim.metrics.live.access import issued
from raydp_sim.metrics.live.feed import Serving
from raydp_sim.metrics.sinks import SINKS
from raydp_sim.scenario import Scenario

_AGAIN_SECONDS = 15.0  # that the process of a dead actor may take to give its port back
_LOOPBACK = ("127.", "localhost", "::1", "[::1]")


@dataclass(frozen=True)
class Served:
    """A run that is served.

    Attributes:
        url: to connect to.
        page: of the browser; None: there is none.
        tokens: that were made for it, by what they open; none if they were given.
        warning: what a person should know about it.
    """

    url: str
    tokens: dict[str, str]
    warning: str | None = None
    page: str | None = None

    def lines(self) -> list[str]:
        """Return what is said of it, once: nobody keeps the tokens."""
        from raydp_sim.metrics.page.serving import MISSING, available  # few runs are served

        made = [f"  token for {what}: {token}" for what, token in self.tokens.items()]
        warned = [] if self.warning is None else [f"warning: {self.warning}"]
        page = f"page at {self.page}" if self.page else f"no page: {MISSING}"
        shown = [] if self.page is None and available() else [page]
        return [f"served at {self.url}", *shown, *made, *warned]


def say(served: Served) -> None:
    """Say on standard error how to follow a run, where no other display does."""
    print("\n".join(served.lines()), file=sys.stderr, flush=True)


def tell(line: str) -> None:
    """Say on standard error what happened to a run, where no other display does."""
    print(line, file=sys.stderr, flush=True)


def unencrypted(host: str, certificate: str | None) -> str | None:
    """Return what to say where tokens would travel in the clear; None where they do not.

    Example:
        >>> unencrypted("127.0.0.1", None) is None, unencrypted("0.0.0.0", None)
        (True, 'tokens and rows travel unencrypted; give a certificate and its key')
    """
    if certificate is not None or host.startswith(_LOOPBACK):
        return None
    return "tokens and rows travel unencrypted; give a certificate and its key"


def wanted(scenario: Scenario, folder: Path) -> tuple[Serving, Served | None] | None:
    """Return where rows of a scenario go while it is played, and to whom; None: only to disk.

    What is to be said of it is None where there are only sinks.

    Args:
        scenario: to be played.
        folder: the run directory, after which the run is called.

    Raises:
        InputError: the tokens cannot be used.
    """
    metrics = scenario.metrics
    sinks = [SINKS.dump(sink) for sink in metrics.sinks]
    if metrics.address is None and not sinks:
        return None
    about = {
        "run": folder.name,
        "scenario": scenario.name,
        "clients": scenario.population.clients,
        "rounds": scenario.task.rounds,
        "repeat": scenario.repeat,
        "trust": scenario.trust,
    }
    if metrics.address is None:
        return Serving(host=None, about=about, sinks=sinks), None
    from raydp_sim.metrics.page.serving import MISSING, available

    host, port = metrics.address
    tokens = issued(metrics.tokens)
    warning = unencrypted(host, metrics.certificate)
    if warning is not None:
        warning += ": metrics.certificate and metrics.key"
    page = metrics.page_at if available() else None
    if page is None and isinstance(metrics.page, str):
        raise bad_field("metrics.page", metrics.page, MISSING)
    secure = metrics.certificate, metrics.key
    serving = Serving(host, port, tokens.grants, *secure, about, sinks, page)
    return serving, Served("", tokens.made, warning)


class Server:
    """Serves a run; one that is taken up again at the same place, to those who have its tokens."""

    def __init__(self) -> None:
        self._serving: Serving | None = None

    def serve(
        self,
        scenario: Scenario,
        folder: Path,
        start: Callable[[Serving], tuple[str, str | None]],
    ) -> Served | None:
        """Serve a run if its scenario says so; return what is to be said of it, once.

        Args:
            scenario: that is played.
            folder: of the run.
            start: starts serving and returns the address, and the page's.
        """
        if self._serving is not None:
            self._again(self._serving, start)
            return None
        if (found := wanted(scenario, folder)) is None:
            return None
        serving, served = found
        url, page = start(serving)
        self._serving = _pinned(serving, url, page)
        return None if served is None else replace(served, url=url, page=page)

    @staticmethod
    def _again(serving: Serving, start: Callable[[Serving], tuple[str, str | None]]) -> None:
        deadline = time.monotonic() + _AGAIN_SECONDS
        while True:
            try:
                start(serving)
                return
            except InputError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)


def _pinned(serving: Serving, url: str, page: str | None) -> Serving:
    """Return the same with the ports that were free."""
    if serving.host is None:
        return serving
    found = replace(serving, port=_port(url))
    if serving.page is not None and page is not None:
        found = replace(found, page=(serving.page[0], _port(page)))
    return found


def _port(url: str) -> int:
    """Return the port of an address.

    Example:
        >>> _port("grpc://127.0.0.1:8815"), _port("http://localhost:8816/")
        (8815, 8816)
    """
    return int(url.split("://")[1].split("/")[0].rpartition(":")[2])
