"""The process that serves a run: started by it with its standard input as the pipe of rows.

The first line that it reads is what to serve, where and to whom; the line that it writes has the
port, or why there is none. It ends when the run does: at its end followers may catch up as long as
they get on, and one that does not is left.
"""

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from raydp_sim.metrics.live.access import Grant
from raydp_sim.metrics.live.feed import known
from raydp_sim.metrics.live.outlets import Outlets
from raydp_sim.metrics.live.service import Service
from raydp_sim.metrics.live.store import Store
from raydp_sim.metrics.live.wire import messages

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
    service, answer = _started(document, store, folder)
    print(json.dumps(answer), flush=True)
    if service is None and "why" in answer:
        os._exit(0)
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
    grants = [Grant(digest, tuple(scopes), reader) for digest, scopes, reader in document["grants"]]
    certificates, secure = None, ""
    try:
        if document["certificate"]:
            certificate, key = (
                Path(document[name]).read_bytes() for name in ("certificate", "key")
            )
            certificates, secure = [(certificate, key)], "+tls"
        location = f"grpc{secure}://{document['host']}:{document['port']}"
        service = Service(location, store, folder, grants, certificates)
    except OSError as error:
        return None, {"why": f"{error.filename}: {error.strerror}"}
    except pa.ArrowException:
        taken = "nothing can listen there; is the port in use, or not this machine's address?"
        return None, {"why": "the certificate or key is not valid PEM" if secure else taken}
    return service, {"port": service.port}


def _wait_for_followers(store: Store) -> None:
    store.moved = time.monotonic()
    with store.changed:
        while store.followers and time.monotonic() - store.moved < _STUCK:
            store.changed.wait(0.05)
    # What was handed to the network is on its way when the call returns; let it leave.
    with contextlib.suppress(Exception):
        time.sleep(0.2)


if __name__ == "__main__":
    main()
