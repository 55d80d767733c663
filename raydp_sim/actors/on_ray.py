"""The actors as Ray processes."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import Any

import ray
from ray.exceptions import (
    ActorDiedError,
    ActorUnavailableError,
    ActorUnschedulableError,
    GetTimeoutError,
    ObjectLostError,
    RayActorError,
    RaySystemError,
    RayTaskError,
    WorkerCrashedError,
)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from raydp_sim.actors.backend import Actor, Lost, Ref
from raydp_sim.actors.cluster import LOOK_SECONDS, Heart, answers
from raydp_sim.errors import InputError, RunError
from raydp_sim.kernels.memory import keep_freed

_GONE = (
    ActorDiedError,
    ActorUnavailableError,
    ActorUnschedulableError,  # its node was lost before it was there
    ObjectLostError,
    RayActorError,
    RaySystemError,
    WorkerCrashedError,
)
_UNREACHED_SECONDS = 60.0


class OnRay:
    """One operating-system process per actor, on a Ray that is already initialised."""

    def __init__(self) -> None:
        self._home = ray.get_runtime_context().get_node_id()
        self._spawned = 0
        self._methods: dict[tuple[Actor, str, int], Any] = {}
        self._heart = Heart()
        self._kinds: dict[Actor, tuple[type, bool]] = {}
        self._idle: dict[tuple[type, bool], list[Actor]] = {}

    def cpus(self) -> int:
        """Return the CPUs of the cluster."""
        return max(1, int(ray.cluster_resources().get("CPU", 1)))

    def memory(self) -> int:
        """Return the bytes of memory that the cluster's nodes say they have for actors."""
        return int(ray.cluster_resources().get("memory", 0))

    def spawn(self, cls: type, *args: Any, anywhere: bool = False) -> Actor:
        """Start a process. It reserves no CPU: that can hang a start on a small machine.

        Ray balances what reserves CPUs; what does not it places at random, also where a node is
        only preferred. So nodes take turns, as often as they have CPUs, and each is told which one
        it is on. One that was retired is made anew where it is, which takes no process and no
        import.
        """
        if idle := self._idle.get((cls, anywhere)):
            actor = idle.pop(0)
            actor.__ray_call__.remote(_anew, *args)
            return actor
        home = self._home
        if anywhere:
            home = self._guarded(lambda: _first_there(self._spawned)) or home
            self._spawned += 1
        place = NodeAffinitySchedulingStrategy(home, soft=False)
        remote = ray.remote(cls)
        # Ray's own events of every call cost a tenth of the call, and nobody reads them.
        options = {"num_cpus": 0, "max_restarts": 0, "enable_task_events": False}
        actor = remote.options(**options, scheduling_strategy=place).remote(*args)
        actor.__ray_call__.remote(_settled)
        self._kinds[actor] = (cls, anywhere)
        return actor

    def _guarded(self, asking: Callable[[], str | None]) -> str | None:
        """Ask Ray's control process; should it be gone, say so.

        Ray itself would wait a minute for it, and then end this process with exit code 1.
        """
        answer: Future[str | None] = Future()

        def ask() -> None:
            try:
                answer.set_result(asking())
            except Exception as error:
                answer.set_exception(error)

        # Nobody waits for a thread of this kind when the process ends.
        threading.Thread(target=ask, daemon=True).start()
        while not wait([answer], timeout=LOOK_SECONDS).done:
            self._heart.beat()
        return answer.result()

    def call(self, actor: Actor, method: str, *args: Any, returns: int = 1) -> tuple[Ref, ...]:
        """Call without waiting."""
        key = (actor, method, returns)
        if key not in self._methods:
            self._methods[key] = getattr(actor, method).options(num_returns=returns)
        refs = self._methods[key].remote(*args)
        return tuple(refs) if returns > 1 else (refs,)

    def wait(self, refs: Sequence[Ref]) -> Sequence[Ref]:
        """Wait for one, then take along whatever else is ready."""
        listed = list(refs)
        self._heart.beat()
        while not ray.wait(listed, num_returns=1, timeout=LOOK_SECONDS, fetch_local=False)[0]:
            self._heart.beat()
        if len(listed) == 1:
            return listed
        ready, _ = ray.wait(listed, num_returns=len(listed), timeout=0, fetch_local=False)
        return list(ready)

    def get(self, ref: Ref) -> Any:
        """Return a result; errors of the actor's own code come back as what they were."""
        try:
            return self._fetched(ref)
        except RayTaskError as error:
            if isinstance(error.cause, _GONE):
                raise _lost(error.cause) from None
            raise told(error.cause) from error
        except _GONE as error:
            raise _lost(error) from None

    def _fetched(self, ref: Ref) -> Any:
        while True:
            try:
                return ray.get(ref, timeout=LOOK_SECONDS)
            except GetTimeoutError as error:
                if isinstance(error, RayTaskError):
                    raise
                self._heart.beat()

    def kill(self, actor: Actor) -> None:
        """End the process."""
        self._methods = {key: found for key, found in self._methods.items() if key[0] != actor}
        self._kinds.pop(actor, None)
        ray.kill(actor)

    def retire(self, actors: Sequence[Actor]) -> None:
        """Wait until each has done or dropped what it was asked, or is certainly no more."""
        self._heart.look()
        asked = [(actor, actor.__ray_call__.remote(_emptied)) for actor in actors]
        for actor, ref in asked:
            if self._survives(actor, ref):
                self._idle.setdefault(self._kinds[actor], []).append(actor)
            else:
                self.kill(actor)

    def _survives(self, actor: Actor, ref: Ref) -> bool:
        """Say whether an actor lives.

        One that cannot be reached for a moment may still write to the disk, and is asked again.
        """
        deadline = time.monotonic() + _UNREACHED_SECONDS
        while True:
            try:
                self._fetched(ref)
            except ActorUnavailableError:
                if time.monotonic() > deadline:
                    raise RunError("an actor can neither be reached nor is it known dead") from None
                self._heart.beat()
                time.sleep(0.1)
                ref = actor.__ray_call__.remote(_emptied)
            except _GONE:
                return False
            else:
                return True


def told(failure: BaseException) -> BaseException:
    """Return what the driver hears of a failure of an actor's own code.

    Of a disk that is full, say, what it would without Ray; of a mistake in the code one line.
    """
    if isinstance(failure, InputError | RunError | OSError):
        return failure
    made = RunError(f"an actor failed: {failure!r}")
    made.__cause__ = failure
    return made


def _settled(actor: Any) -> None:
    keep_freed()


def _emptied(actor: Any) -> None:
    """Have an actor close and forget everything; its calls run in the order they were made."""
    if hasattr(actor, "hang_up"):
        actor.hang_up()
    vars(actor).clear()


def _anew(actor: Any, *args: Any) -> None:
    actor.__init__(*args)


def _first_there(turn: int) -> str | None:
    """Return the node whose turn it is, or the next one that answers.

    Ray counts a node that was lost as alive until its head notices, which may take half a minute.
    """
    nodes = {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}
    turns = _turns({name: int(node["Resources"].get("CPU", 0)) for name, node in nodes.items()})
    for number in range(len(turns)):
        found = nodes[turns[(turn + number) % len(turns)]]
        if answers(found["NodeManagerAddress"], found["NodeManagerPort"]):
            return str(found["NodeID"])
    return None


def _turns(cpus: dict[str, int]) -> list[str]:
    """Return the nodes in the order in which they take turns: each once for every CPU it has.

    Example:
        >>> _turns({"b": 1, "a": 3, "c": 0})
        ['a', 'b', 'a', 'a']
    """
    most = max(cpus.values(), default=0)
    return [node for turn in range(most) for node in sorted(cpus) if turn < cpus[node]]


def _lost(error: Exception) -> Lost:
    """Say in one line who died; Ray's own text has ten."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return Lost(type(error).__name__)
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("class_name:")]
    who = names[0].removesuffix("Actor").lower() if names else "an actor"
    if "creation" in lines[0]:
        return Lost(f"an actor could not be made: {lines[-1]}", who)
    return Lost(f"{names[0]}: {lines[0]}" if names else lines[0], who)
