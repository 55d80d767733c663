"""A campaign: legs of a run, each until its driver dies or gives up, and the proof.

A leg that ends with exit code 3, or is killed, is followed by one that resumes; a run that is over
before all kills were made is followed by another one.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import yaml

from raydp_sim.chaos.plan import KINDS, Kill
from raydp_sim.chaos.record import Fate, Record
from raydp_sim.errors import InputError, RunError
from raydp_sim.metrics import streams
from raydp_sim.privacy.ledger import store
from raydp_sim.run import prepare
from raydp_sim.run.outcome import Outcome, difference, outcome
from raydp_sim.scenario import Scenario, parse

_BARREN = 8  # legs in a row that played nothing, after which a campaign is given up
_CHECKPOINT_SECONDS = 0.5


@dataclass
class _Wound:
    """The last kill, and what followed it so far."""

    kind: str
    leg: int
    last: float
    longest: float = 0.0
    resumed: bool = False

    def row(self, now: float) -> None:
        """Note when a row came, by the clock that all processes share."""
        self.longest, self.last = max(self.longest, now - self.last), now


@dataclass
class Campaign:
    """A campaign under way.

    Attributes:
        scenario: what is played.
        folder: where everything goes.
        record: how far it has come.
        address: of the cluster; None without one.
        lose_node: ends a node, given a number in [0, 1).
        heard: is told of each kill and of each run that is proved, in words.
    """

    scenario: Scenario
    folder: Path
    record: Record
    address: str | None = None
    lose_node: Callable[[float], None] = lambda pick: None
    heard: Callable[[str], None] = lambda text: None
    wound: _Wound | None = None

    def play(self, kills: list[Kill]) -> None:
        """Make all kills and prove after each run that it ended as if nothing had happened.

        Args:
            kills: all of them; those that were made before an interruption are left out.

        Raises:
            RunError: a run could not be brought to its end, or ended otherwise.
        """
        whole = self._undisturbed()
        left = kills[len(self.record.fates) :]
        while left or not self.record.runs or self._run().exists():
            self._one(self._run(), left)
            self._healed()
            self._prove(whole, self._run())
            self.record.runs += 1
            self.record.save(self.folder)
            runs = self.record.runs
            self.heard(f"run {runs}: the same as the undisturbed one; {len(left)} kills left")

    def _run(self) -> Path:
        return self.folder / f"run-{self.record.runs:03d}"

    def _undisturbed(self) -> Outcome:
        document = self.scenario.document()
        document["placement"] |= {"checkpoint_seconds": _CHECKPOINT_SECONDS}
        self.folder.mkdir(parents=True, exist_ok=True)
        self.record.save(self.folder)
        (self.folder / "scenario.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
        made, half = self.folder / "undisturbed", self.folder / "undisturbed.part"
        if not made.exists():
            shutil.rmtree(half, ignore_errors=True)
            document["placement"]["backend"] = "inline"
            for _ in prepare(parse(document), half).releases():
                pass
            os.rename(half, made)
        return outcome(made)

    def _one(self, out: Path, left: list[Kill]) -> None:
        """Play one run to its end, however many legs that takes."""
        barren = 0
        while True:
            rows, code, why = self._leg(out, left)
            if code == 0:
                return
            if code not in (3, -9):
                raise RunError(f"{out}: a leg ended with exit code {code}: {why}", resumable=False)
            if self.wound is not None:
                self.wound.resumed = True
            barren = 0 if rows else barren + 1
            if barren >= _BARREN:
                raise RunError(f"{out}: {barren} legs in a row played nothing: {why}", False)

    def _leg(self, out: Path, left: list[Kill]) -> tuple[int, int, str]:
        """Return the rows of a leg, the exit code of its process and what it said at its end."""
        self.record.legs += 1
        words = [str(self.folder / "scenario.yaml"), str(out), self.address or ""]
        with open(self.folder / "legs.log", "ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "raydp_sim.chaos.leg", *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert process.stdin is not None and process.stdout is not None
        try:
            _order(process, json.dumps([asdict(kill) for kill in left]))
            with process.stdout as said:
                rows, why = self._listen(process, said, left)
            return rows, process.wait(), why
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            with contextlib.suppress(OSError):
                process.stdin.close()

    def _listen(
        self, process: "subprocess.Popen[str]", said: IO[str], left: list[Kill]
    ) -> tuple[int, str]:
        rows, why = 0, ""
        for line in said:
            if not line.startswith("{"):
                continue  # of somebody else
            told: dict[str, Any] = json.loads(line)
            if "row" in told:
                rows += 1
                if self.wound is not None:
                    self.wound.row(told["row"])
            elif "kill" in told:
                kill = left.pop(0)
                self._struck(kill, told["at"])
                if kill.kind == "driver":
                    time.sleep(kill.delay)
                    process.kill()
                    break
                if kill.kind == "node":
                    self.lose_node(kill.pick)
                    _order(process, "struck")
            else:
                why = str(told.get("stopped", ""))
        return rows, why

    def _struck(self, kill: Kill, now: float) -> None:
        if self.wound is not None:
            self.wound.row(now)  # or what takes its place, the next kill
        self._healed()
        self.heard(f"killing: {kill.kind}")
        self.wound = _Wound(kill.kind, self.record.legs - 1, now)

    def _healed(self) -> None:
        """Write down the last kill, now that it is known what became of it."""
        wound, self.wound = self.wound, None
        if wound is None:
            return
        fate = Fate(wound.kind, self.record.runs, wound.leg, wound.resumed, wound.longest)
        self.record.fates.append(fate)
        self.record.save(self.folder)

    def _prove(self, whole: Outcome, out: Path) -> None:
        """Make sure that nothing was lost, nothing counted twice and no budget forgotten.

        Raises:
            RunError: names what differs.
        """
        wrong = difference(whole, outcome(out))
        if wrong is not None:
            raise RunError(f"{out}: {wrong} differs from that of the undisturbed run", False)
        made = _keys(streams.read(out / "metrics", "releases"))
        paid = _keys(store.read(out / "ledger"))
        if len(made) > len(set(made)):
            raise RunError(f"{out}: a release is recorded twice", resumable=False)
        if not set(made) <= set(paid):
            raise RunError(f"{out}: a release was made but not paid for", resumable=False)


def _order(process: "subprocess.Popen[str]", line: str) -> None:
    """Tell a leg, if it is still there."""
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.write(line + "\n")
        process.stdin.flush()


def _keys(rows: Any) -> list[tuple[int, int]]:
    return [tuple(row.values()) for row in rows.select(streams.KEY).to_pylist()]


def applicable(scenario: Scenario, several_nodes: bool) -> list[str]:
    """Return the kinds that there are to kill."""
    if scenario.placement.backend == "inline":
        return ["driver"]
    shuffled = scenario.trust_model.shuffled
    absent = {*(() if shuffled else ("shuffler",)), *(() if several_nodes else ("node",))}
    return [kind for kind in KINDS if kind not in absent]


def refuse_absent(kinds: list[str], there: list[str]) -> None:
    """Refuse to kill who is not there.

    Raises:
        InputError: names the kind.
    """
    for kind in kinds:
        if kind not in there:
            raise InputError(
                f"--kill is {kind!r}; this scenario has none to kill: it has {', '.join(there)} "
                "(nodes with --nodes 2 or more, actors with placement.backend: ray)"
            )
