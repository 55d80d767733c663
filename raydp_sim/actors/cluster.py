"""Starting Ray quietly, in time, and never in somebody else's cluster by accident."""

import contextlib
import logging
import os
import re
import shutil
import socket
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import psutil
import ray

from raydp_sim.actors.leftovers import private_folder
from raydp_sim.errors import InputError, RunError, shortened

# A part of Ray that has no types and no promise to stay: another Ray may do without it.
services: Any = getattr(ray._private, "services", None)
_DIAL_SECONDS = 5.0
LOOK_SECONDS = 1.0
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_LOOK_DIAL_SECONDS = 2.0
# How often a private Ray is asked for its node while it starts, and for how long at most.
_ASK_SECONDS, _REGISTERED_SECONDS = 0.02, 10.0
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # What a dead actor was asked fails, and is asked of another; nobody has to read of it.
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",
    # A process that takes over a minute to start, on a machine that is busy, is no dead one.
    "RAY_worker_register_timeout_seconds": "600",
}
_PRIVATE = {
    # Its first workers import what every actor needs while others are still starting.
    "RAY_preload_python_modules": "raydp_sim.scenario",
    # Batches that were read make room for the next ones: by default the store keeps them for up to
    # a second, and each span takes fresh pages, which every process has to find and clear.
    "RAY_free_objects_period_milliseconds": "100",
    # Ray notes its own calls and how long they take, for a dashboard that is not there.
    "RAY_event_stats": "0",
    "RAY_task_events_report_interval_ms": "0",
}


@contextlib.contextmanager
def connected(address: str | None, timeout: float) -> Iterator[None]:
    """Hold a connection to Ray.

    Without an address a private Ray is started and ended again; a cluster that happens to run on
    the machine is left alone. A connection that this process already has is used and left open.

    Raises:
        InputError: when there is no cluster at the address.
        RunError: when a private Ray cannot be started.
    """
    if ray.is_initialized():
        here = ray.get_runtime_context().gcs_address
        if address not in (None, "auto", here):
            raise InputError(
                f"--address is {address!r}; this process already uses the Ray at {here}: leave the "
                "address out, or call ray.shutdown() first"
            )
        yield
        return
    setting(QUIET)
    _hush()
    with contextlib.ExitStack() as until:
        if address is None:
            until.callback(_unset, setting(_PRIVATE))
        folder = until.enter_context(private_folder()) if address is None else None
        until.callback(ray.shutdown)
        with _time_limit(timeout, folder):
            _start(address, folder)
        yield


def setting(variables: dict[str, str]) -> list[str]:
    """Set variables that Ray reads, unless the user has; return which were set."""
    missing = [name for name in variables if name not in os.environ]
    os.environ.update({name: variables[name] for name in missing})
    return missing


def _unset(names: list[str]) -> None:
    """Leave no trace of a private Ray: one that is started later would have its settings."""
    for name in names:
        os.environ.pop(name, None)


def _hush() -> None:
    """Have what Ray says of its nodes in a sentence on standard error each.

    Ray prints it past every log setting to standard output, where a summary belongs, with twenty
    lines of a log; so the one function that prints is replaced. Nothing is said of the many actors
    that are there on purpose.
    """
    if hasattr(ray._private.worker, "print_to_stdstream"):
        ray._private.worker.print_to_stdstream = _in_a_line


def _in_a_line(data: dict[str, Any], *_: Any, **__: Any) -> None:
    for said in map(str, data["lines"]):
        if "worker processes have been started" not in said:
            first = _COLOURS.sub("", said).strip().partition("\n")[0].partition(". ")[0]
            print(f"Ray: {shortened(first)}", file=sys.stderr, flush=True)


def _start(address: str | None, folder: str | None) -> None:
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if address is None:
            with _impatient():
                ray.init(address="local", include_dashboard=False, _temp_dir=folder, **quiet)
        else:
            _dial(address)
            ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, OSError) as error:
        if address is not None:
            raise _no_cluster(address, str(error)) from None
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RunError(f"Ray could not be started: {reason}") from error


@contextlib.contextmanager
def _impatient() -> Iterator[None]:
    """Wait for the new node before Ray does, which looks for it once a second."""
    own = getattr(services, "get_node", None)
    if own is None:
        yield
        return

    def get_node(*given: Any, **named: Any) -> Any:
        with contextlib.suppress(Exception):  # Ray's own look, which follows, says what is wrong
            address, node = given
            _await(services.GcsClient(address=address), node)
        return own(*given, **named)

    services.get_node = get_node
    try:
        yield
    finally:
        services.get_node = own


def _await(client: Any, node: str) -> None:
    until = time.monotonic() + _REGISTERED_SECONDS
    while time.monotonic() < until:
        if any(found.hex() == node for found in client.get_all_node_info(timeout=1.0)):
            return
        time.sleep(_ASK_SECONDS)


class Heart:
    """Looks now and then whether the Ray that this process uses is still there.

    Actors answer each other without Ray's control process (GCS), and Ray itself waits a minute for
    it; a run that could place nobody any more, nor resume elsewhere, should end sooner.
    """

    def __init__(self) -> None:
        self._looked = time.monotonic()
        self._missed = 0
        self._address = str(ray.get_runtime_context().gcs_address)
        node = getattr(ray._private.worker, "_global_node", None)
        started = getattr(node, "all_processes", None) or {}
        # Of a Ray that this process started itself.
        self._processes = [
            (kind, info.process)
            for kind in ("gcs_server", "raylet")
            for info in started.get(kind, ())
        ]

    def beat(self) -> None:
        """Look, unless that was done a moment ago.

        Raises:
            RunError: it has ended.
        """
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            self.look()

    def look(self) -> None:
        """Look now.

        Raises:
            RunError: it has ended.
        """
        self._looked = time.monotonic()
        for kind, process in self._processes:
            if process.poll() is not None:
                raise RunError(f"Ray's {kind} has ended")
        if not self._processes and not self._answers():
            self._missed += 1
            if self._missed > 1:
                raise RunError(f"Ray's head at {self._address} does not answer any more")
        else:
            self._missed = 0

    def _answers(self) -> bool:
        host, _, port = self._address.rpartition(":")
        return answers(host, int(port))


def answers(host: str, port: int) -> bool:
    """Say whether somebody listens there."""
    try:
        socket.create_connection((host, port), timeout=_LOOK_DIAL_SECONDS).close()
    except OSError:
        return False
    return True


def _dial(address: str) -> None:
    """Make sure that somebody listens: Ray itself would wait for minutes."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdigit():
        raise InputError(
            f"--address is {address!r}; write host:port of the cluster's head node, or auto, and "
            "run on a machine of the cluster"
        )
    try:
        socket.create_connection((host, int(port)), timeout=_DIAL_SECONDS).close()
    except OSError as error:
        raise _no_cluster(address, str(error)) from None


def _no_cluster(address: str, why: str) -> InputError:
    reason = why.splitlines()[0] if why else "no answer"
    return InputError(
        f"--address is {address!r}; no Ray cluster answers there ({reason}); start one with "
        "`ray start --head`, or leave --address out"
    )


@contextlib.contextmanager
def _time_limit(seconds: float, folder: str | None) -> Iterator[None]:
    """End the whole process if Ray takes longer: its start cannot be interrupted otherwise."""

    def give_up() -> None:
        print(
            f"Ray did not start within {seconds:g} s; free some memory or CPU, or raise "
            "placement.start_timeout (`--set placement.start_timeout=300`)",
            file=sys.stderr,
            flush=True,
        )
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                child.kill()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(3)

    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
