"""The process that serves a run: started by it with its standard input as the pipe of rows.

The first line that it reads is what to serve, where and to whom; the line that it writes has the
port, or why there is none. It ends when the run does: at its end followers may catch up as long as
they get on, and one that does not is left.
"""

import contextlib
import json
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from raydp_sim.errors import InputError
from raydp_sim.metrics.live.access import Grant
from raydp_sim.metrics.live.feed import known
from raydp_sim.metrics.live.outlets import Outlets
from raydp_sim.metrics.live.service import Service
from raydp_sim.metrics.live.store import Store
from raydp_sim.metrics.live.wire import messages
from raydp_sim.metrics.page import serving
from raydp_sim.metrics.page.runs import One
from raydp_sim.metrics.page.source import Stored

_SINKS = 5.0  # seconds that sinks have for what is left
_STUCK = 2.0  # seconds without a row for anybody, after which whoever is left does not read


def main() -> None:
    """Serve until the run is over."""
    # Ctrl-C is for the run, which then closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source = sys.stdin.buffer
    document = json.loads(source.readline())
    folder = Path(document["folder"])
    store = Store(document["about"])
    for message in known(folder):
        store.take(message)
    # Kept to the end: a server that is let go waits for followers, however long they take.
    _service, answer = _started(document, store, folder)
    listening = None
    if document["page"] and "why" not in answer:
        host, port = document["page"]
        try:
            listening = serving.bound(host, port, "metrics.page")
        except InputError as error:
            answer = {"page": None, "why": str(error)}
        else:
            taken = listening.getsockname()[1]
            answer["page"] = serving.address(host, taken, document["certificate"] is not None)
    print(json.dumps(answer), flush=True)
    if "why" in answer:
        os._exit(0)
    if listening is not None:
        # Importing what it needs takes a moment, for which neither the run nor followers wait.
        shown = (document, listening, Stored(store, folder.parent))
        threading.Thread(target=_show, args=shown, daemon=True).start()
    outlets = Outlets(document["sinks"], store, folder.parent)
    for message in messages(source):
        store.take(message)
    store.lost()
    _wait_for_followers(store)
    outlets.finish(_SINKS)
    os._exit(0)


def _started(
    document: dict[str, Any], store: Store, folder: Path
) -> tuple[Service | None, dict[str, Any]]:
    if document["host"] is None:
        return None, {"port": None}
    certificates, secure = None, ""
    try:
        if document["certificate"]:
            certificate, key = (
                Path(document[name]).read_bytes() for name in ("certificate", "key")
            )
            certificates, secure = [(certificate, key)], "+tls"
        location = f"grpc{secure}://{document['host']}:{document['port']}"
        service = Service(location, store, folder, _grants(document), certificates)
    except OSError as error:
        return None, {"why": f"{error.filename}: {error.strerror}"}
    except pa.ArrowException:
        taken = "nothing can listen there; is the port in use, or not this machine's address?"
        return None, {"why": "the certificate or key is not valid PEM" if secure else taken}
    return service, {"port": service.port}


def _show(document: dict[str, Any], listening: socket.socket, source: Stored) -> None:
    """Show the run on a web page; whatever happens to it, followers are served."""
    store = source.store

    def told(followers: int, answering: int) -> None:
        with store.changed:
            store.followers += followers
            store.answering += answering
            store.moved = time.monotonic()
            store.changed.notify_all()

    def watched(change: int) -> None:
        told(change, 0)

    def answering(change: int) -> None:
        told(0, change)

    runs, grants = One(str(document["about"].get("run", "run")), source), _grants(document)
    tls = document["certificate"], document["key"]
    server = serving.Server(listening, runs, grants, *tls, watched=watched, answering=answering)
    server.serve_beside()


def _grants(document: dict[str, Any]) -> list[Grant]:
    return [Grant(digest, tuple(scopes), reader) for digest, scopes, reader in document["grants"]]


def _wait_for_followers(store: Store) -> None:
    store.moved = time.monotonic()
    with store.changed:
        while store.answering or (store.followers and time.monotonic() - store.moved < _STUCK):
            store.changed.wait(0.05)
    # What was handed to the network is on its way when the call returns; let it leave.
    with contextlib.suppress(Exception):
        time.sleep(0.2)


if __name__ == "__main__":
    main()
