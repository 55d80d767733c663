"""Run: drive a scenario from beginning to end, or from where it was interrupted."""

import contextlib
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from raydp_sim.actors.backend import Backend, Inline
from raydp_sim.actors.conductor import Conductor, Row
from raydp_sim.actors.crew import Crew, Shards, ranges
from raydp_sim.errors import Died, InputError, RunError
from raydp_sim.run.checkpoints import Checkpoint
from raydp_sim.run.directory import RunDir
from raydp_sim.run.preflight import Plan, Room, plan, refuse_what_cannot_fit
from raydp_sim.run.recover import Recoveries, Shown
from raydp_sim.run.result import RunResult as RunResult
from raydp_sim.run.serving import Served, Server, say, tell
from raydp_sim.scenario import Scenario, bound_mechanism, load, parse, setting_of
from raydp_sim.scenario.accounting import planned_releases
from raydp_sim.tasks.base import Arrays


@dataclass
class Watcher:
    """Callbacks of a run's progress; every hook may be left as it is."""

    planned: Callable[[Plan], None] = lambda planned: None
    phase: Callable[[str], None] = lambda name: None
    loaded: Callable[[int, int], None] = lambda done, total: None
    served: Callable[[Served], None] = say
    placed: Callable[[Crew], None] = lambda crew: None
    told: Callable[[str], None] = tell


@dataclass
class Run:
    """One run of a scenario; iterate over `play()` for its rows, then read `result`."""

    scenario: Scenario
    directory: RunDir
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    address: str | None = None
    origin: Path | None = None
    watcher: Watcher = field(default_factory=Watcher)
    result: RunResult | None = None
    complete: set[int] = field(default_factory=set)  # repetitions that the task itself ended
    taken_up: bool = False  # from a checkpoint, or from a beginning that was written down
    loading_s: float = 0.0  # that reading the scenario and calibrating its mechanism took

    def play(self) -> Generator[Row, None, None]:
        """Play the scenario to its end and yield the row of each release as it happens.

        Raises:
            InputError: before anything is written.
            RunError: the run cannot go on; it can be resumed.
        """
        began = time.monotonic()
        with contextlib.ExitStack() as lock:
            yield from self._releases(lock)
            self._finish(time.monotonic() - began)

    def releases(self) -> Generator[Row, None, None]:
        """Play as `play` does and leave out the summary and the picture."""
        with contextlib.ExitStack() as lock:
            yield from self._releases(lock)

    def _releases(self, lock: contextlib.ExitStack) -> Iterator[Row]:
        if self.address is None:
            self.watcher.planned(self.planned())
        if self.directory.begun():
            lock.enter_context(self.directory.locked())
            self._take_up()
            start = self.checkpoint
            self._note(f"resumed at repetition {start.repetition}, release {start.finished}")
        with self._backend() as backend:
            if self.address is not None:
                # Only the cluster knows how large it is.
                self.watcher.planned(self.planned(Room(backend.cpus(), backend.memory())))
            yield from self._on(backend, lock)

    def _take_up(self) -> None:
        """Continue from the last checkpoint; whoever calls has the run's lock."""
        self.taken_up = True
        with self.directory.reading():
            self.checkpoint = start = self.directory.latest()
            self.complete = set((start.saved or {}).get("run", {}).get("complete", ()))
            self.directory.rewind(start)
            self.directory.check_paid()

    def _on(self, backend: Backend, lock: contextlib.ExitStack) -> Iterator[Row]:
        self._recoveries = Recoveries(self.scenario.placement.recoveries)
        self._shown, self._server = Shown(), Server()
        self._behind: tuple[int, int] | None = None
        self.watcher.phase("placing clients")
        crew = Crew(self.scenario, backend, self.directory.path, self.watcher.loaded)
        try:
            while (died := (yield from self._with(crew, lock))) is not None:
                crew = self._recovered(crew, died)
        except OSError as error:
            why = f"{error.filename or self.directory.path}: {error.strerror or error}"
            self._note(f"stopped: {why}")
            stopped = RunError(f"something could not be written or read ({why})")
            raise RunError(f"{stopped}{self._how_to_resume(stopped)}") from error
        except RunError as error:
            self._note(f"stopped: {error}")
            raise RunError(f"{error}{self._how_to_resume(error)}", error.resumable) from error
        except KeyboardInterrupt:
            self._note("interrupted")
            raise
        finally:
            with contextlib.suppress(Exception):
                crew.stop()

    def _with(self, crew: Crew, lock: contextlib.ExitStack) -> Generator[Row, None, Died | None]:
        """Play with a crew to the end; return who died, if the run may go on with another crew."""
        try:
            self._serve(crew)
            self.watcher.placed(crew)
            yield from filter(self._shown.first, self._repetitions(crew, lock))
            self.watcher.phase("writing the summary")
            crew.ask(crew.metrics, "flush")
            crew.ask(crew.ledger, "compact")
            crew.ask(crew.metrics, "over")
        except Died as died:
            self._recoveries.grant(died)
            return died
        return None

    def _recovered(self, crew: Crew, died: Died) -> Crew:
        """Take the run up from its last checkpoint with another crew, as `resume` would.

        What the old one was asked has no effect any more: who lives of it has finished or dropped
        that before the directory is looked at, and nobody waits for its answers.
        """
        crew.retire()
        if self.directory.begun():
            try:
                self._take_up()
            except InputError as damage:  # set aside; nobody is there to resume once more
                self._tell(str(damage))
                self._take_up()
        self._behind = self._shown.reached
        start, repeat = self.checkpoint, self.scenario.repeat
        self._tell(self._recoveries.line(died, self._shown.reached[1], start, repeat))
        return Crew(crew.scenario, crew.backend, self.directory.path, self.watcher.loaded)

    def _tell(self, line: str) -> None:
        self._note(line)
        self.watcher.told(line)

    def _serve(self, crew: Crew) -> None:
        """Let others follow the run, if it says so."""
        served = self._server.serve(
            self.scenario,
            self.directory.path,
            lambda serving: crew.ask(crew.metrics, "serve", serving),
        )
        if served is not None:
            self.watcher.served(served)

    def planned(self, room: Room | None = None) -> Plan:
        """Estimate what it will need, before anything is written.

        Args:
            room: of the cluster that is joined; by default this machine's.

        Raises:
            InputError: it cannot fit.
        """
        here = room or Room.here()
        cpus = here.cpus if self.scenario.placement.backend == "ray" else 1
        planned = plan(self.scenario, len(ranges(self.scenario, cpus)), self.loading_s, cpus)
        if self.address is None or room is not None:
            refuse_what_cannot_fit(self.scenario, planned, here)
        return planned

    @contextlib.contextmanager
    def _backend(self) -> Iterator[Backend]:
        if self.scenario.placement.backend == "inline":
            if self.address is not None:
                raise InputError(
                    "--address needs placement.backend: ray; this scenario says inline"
                )
            yield Inline()
            return
        self.watcher.phase("starting Ray")
        # Ray takes a second to import; what does not need it should not wait for it.
        from raydp_sim.actors.cluster import connected
        from raydp_sim.actors.on_ray import OnRay
        from raydp_sim.actors.together import Together

        placement = self.scenario.placement
        with connected(self.address, placement.start_timeout):
            yield Together() if placement.servers == "driver" else OnRay()

    def _repetitions(self, crew: Crew, lock: contextlib.ExitStack) -> Iterator[Row]:
        start, rounds = self.checkpoint, self.scenario.task.rounds
        for repetition in range(start.repetition, self.scenario.repeat):
            first = repetition == start.repetition
            finished, saved = (start.finished, start.saved) if first else (0, None)
            try:
                crew.begin(repetition, finished, saved, self._shards(start) if first else None)
            except InputError as error:
                if first:
                    raise
                raise RunError(f"in repetition {repetition}: {error}", resumable=False) from None
            if first:
                # Only now is it certain that every client's data can be used.
                self._open(lock)
            self.watcher.phase("playing")
            conductor = Conductor(crew, finished, (saved or {}).get("clock"))
            conductor.on_finished = self._checkpointer(conductor, repetition)
            try:
                yield from conductor.play(rounds)
            except RunError as error:
                if self._recoveries.spent or not isinstance(error, Died):
                    self._rescue(crew)
                raise
            if conductor.ended is not None or conductor.done:
                self._end_early(conductor, repetition)
            crew.ask(crew.metrics, "finish", crew.ask(crew.lead, "checkpoint")["public"])

    def _open(self, lock: contextlib.ExitStack) -> None:
        if not self.taken_up:
            self.directory.make()
            lock.enter_context(self.directory.locked())
            self.directory.create(self.scenario, self.origin)

    def _checkpointer(self, conductor: Conductor, repetition: int) -> Callable[[int], None]:
        rounds, pause = self.scenario.task.rounds, self.scenario.placement.checkpoint_seconds
        last = time.monotonic()

        def checkpoint(finished: int) -> None:
            nonlocal last
            # The next death should not throw the run back behind the last one.
            there = self._behind is not None and (repetition, finished) >= self._behind
            if time.monotonic() - last < pause and finished < rounds and not there:
                return
            self._save(conductor, repetition, finished)
            last = time.monotonic()

        return checkpoint

    def _save(self, conductor: Conductor, repetition: int, finished: int) -> None:
        """Write a checkpoint; from then on respawned clients start from it."""
        saved = conductor.checkpoint(finished)
        saved["run"] = {"complete": np.array(sorted(self.complete), np.int64)}
        made = Checkpoint(repetition, finished, saved)
        self.directory.save(made, conductor.shards())
        self._write_files(repetition, saved["state"], made)
        conductor.crew.checkpoint = self._shards(made)
        conductor.checkpointed()
        self._recoveries.checkpointed()
        self._behind = None
        self._shown.checkpointed(repetition, finished)

    def _rescue(self, crew: Crew) -> None:
        """Write down what a run that has to stop has released so far: rows, and what is taken away.

        A resumed run starts from its checkpoint all the same, and makes them anew.
        """
        with contextlib.suppress(Exception):
            crew.ask(crew.metrics, "flush")
        with contextlib.suppress(Exception):
            # A step that failed has left the state as it was after the last release.
            state = crew.ask(crew.lead, "checkpoint")["state"]
            self._write_files(crew.repetition, state, None)

    def _write_files(self, repetition: int, state: Arrays, made: Checkpoint | None) -> None:
        """Write what the task lets its user take away.

        Args:
            repetition: which one.
            state: of the lead reader.
            made: the checkpoint that has the clients' state; None: nothing of theirs is written.
        """
        task, setting = self.scenario.task, setting_of(self.scenario)
        files = task.files(setting, state)
        shards = None if made is None else self._shards(made)
        if task.keeps_own and shards is not None and (own := shards(0, 1 << 32)) is not None:
            files = {**files, **task.own_files(setting, own)}
        for name, arrays in files.items():
            folder, _, last = name.rpartition("/")
            place = folder if self.scenario.repeat == 1 else f"{folder}/repetition-{repetition}"
            self.directory.write_arrays(f"{place}/{last}.npz", arrays)

    def _shards(self, checkpoint: Checkpoint) -> Shards:
        return lambda first, last: self.directory.clients(checkpoint, first, last)

    def _end_early(self, conductor: Conductor, repetition: int) -> None:
        """Keep what was released when the task ended the run, or clients stayed away for good."""
        finished = conductor.state.floor
        if conductor.done:
            self._refuse_unstated_end(finished)
            self.complete.add(repetition)
        why = "the task ended the run" if conductor.done else "nobody came any more"
        self._note(f"{why} after release {finished - 1} of repetition {repetition}")
        if finished:
            self._save(conductor, repetition, finished)

    def _refuse_unstated_end(self, finished: int) -> None:
        """Refuse a task that ends the run by its results though it says that it does not.

        Its releases were accounted for as a sequence of a length that was fixed beforehand.
        """
        task = self.scenario.task
        parts = planned_releases(self.scenario, bound_mechanism(self.scenario))
        planned = sum(part.times for part in parts)
        if not task.open_ended and finished < planned:
            raise RunError(
                f"the task ended the run after {finished} of {planned} planned releases, but it "
                "says that what was released never does; declare open_ended = True",
                resumable=False,
            )

    def _finish(self, wall_s: float) -> None:
        from raydp_sim.run.summary import summarize  # here, since releases need not wait for it

        summary = summarize(self.scenario, self.directory, wall_s, self.complete)
        summary["timing"]["loading_s"] = self.loading_s
        result = RunResult(summary, self.directory.path, self.scenario)
        result.plot()
        self.directory.write_summary(summary)
        self.directory.checkpoints.prune(1)
        self._note("finished")
        self.result = result

    def _note(self, line: str) -> None:
        # A run that stops because the disk is full has no room for this either.
        with contextlib.suppress(OSError):
            if self.directory.begun():
                self.directory.log(line)

    def _how_to_resume(self, error: RunError) -> str:
        if not (error.resumable and self.directory.begun()):
            return ""
        return f"; continue with `raydp-sim resume {self.directory.path}`"


def prepare(
    scenario: Scenario,
    out: str | Path | None = None,
    address: str | None = None,
    origin: Path | None = None,
) -> Run:
    """Make a run of a scenario in a directory of its own; nothing is written yet.

    Args:
        scenario: what to play.
        out: the run directory; by default a new one under `runs/`.
        address: a running Ray cluster to join.
        origin: the scenario's file, to be noted for `reopen`.
    """
    return Run(scenario, RunDir.fresh(scenario.name, out), address=address, origin=origin)


def reopen(path: str | Path, address: str | None = None) -> Run:
    """Make a run that continues an interrupted one.

    A run that is already complete comes back with its `result` set.
    """
    directory = RunDir.existing(path)
    scenario = directory.scenario()
    with directory.reading():
        summary, checkpoint = directory.read_summary(), directory.checkpoints.reached()
    made = Run(scenario, directory, checkpoint, address)
    if summary is not None:
        made.result = RunResult(summary, directory.path, scenario)
    return made


def run(
    scenario: Scenario | str | Path | dict[str, Any],
    out: str | Path | None = None,
    address: str | None = None,
    **overrides: Any,
) -> RunResult:
    """Play a scenario to its end.

    Args:
        scenario: a file, a mapping of sections, or a `Scenario`.
        out: the run directory; by default a new one under `runs/`.
        address: a running Ray cluster to join; by default a private Ray is started.
        overrides: fields to replace, with `__` for the dot: `population__clients=500`.
    """
    made = _made(scenario, out, address, overrides)
    for _ in made.play():
        pass
    if made.result is None:
        raise RunError("the run ended without a result")
    return made.result


def stream(
    scenario: Scenario | str | Path | dict[str, Any],
    out: str | Path | None = None,
    address: str | None = None,
    **overrides: Any,
) -> Iterator[Row]:
    """Play a scenario and yield the row of each release as it happens; see `run`."""
    yield from _made(scenario, out, address, overrides).play()


def _made(
    scenario: Scenario | str | Path | dict[str, Any],
    out: str | Path | None,
    address: str | None,
    overrides: dict[str, Any],
) -> Run:
    assignments = [f"{name.replace('__', '.')}={value}" for name, value in overrides.items()]
    if isinstance(scenario, Scenario):
        changed = parse(scenario.document(), assignments) if assignments else scenario
        return prepare(changed, out, address)
    if isinstance(scenario, dict):
        return prepare(parse(scenario, assignments), out, address)
    return prepare(load(scenario, assignments), out, address, origin=Path(scenario))
