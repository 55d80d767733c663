"""A campaign: legs of a run, each until somebody dies who cannot be replaced, and the proof.

A leg that ends with exit code 3, or is killed, is followed by one that resumes; a run that is over
before all kills were made is followed by another one.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

import yaml

from raydp_sim.chaos.plan import KINDS, Kill
from raydp_sim.errors import InputError, RunError
from raydp_sim.metrics import streams
from raydp_sim.privacy.ledger import store
from raydp_sim.run import prepare
from raydp_sim.run.outcome import Outcome, difference, outcome
from raydp_sim.scenario import Scenario, parse

_BARREN = 8  # legs in a row that played nothing, after which a campaign is given up
_CHECKPOINT_SECONDS = 0.5


@dataclass
class Tally:
    """What became of the kills of one kind.

    Attributes:
        kills: made.
        replaced: after which the run went on by itself.
        resumed: after which it was resumed.
        seconds: of each kill, the longest that no row came between it and the next.
    """

    kills: int = 0
    replaced: int = 0
    resumed: int = 0
    seconds: list[float] = field(default_factory=list)


@dataclass
class _Wound:
    """The last kill, and what followed it so far."""

    kind: str
    last: float
    longest: float = 0.0
    resumed: bool = False

    def row(self) -> None:
        """Note that a row came."""
        now = time.monotonic()
        self.longest, self.last = max(self.longest, now - self.last), now


@dataclass
class Campaign:
    """A campaign under way.

    Attributes:
        scenario: what is played.
        folder: where everything goes.
        address: of the cluster; None without one.
        lose_node: ends a node, given a number in [0, 1).
        heard: is told of each kill and of each run that is proved, in words.
    """

    scenario: Scenario
    folder: Path
    address: str | None = None
    lose_node: Callable[[float], None] = lambda pick: None
    heard: Callable[[str], None] = lambda text: None
    tallies: dict[str, Tally] = field(default_factory=dict)
    runs: int = 0
    legs: int = 0
    wound: _Wound | None = None

    def play(self, kills: list[Kill]) -> None:
        """Make all kills and prove after each run that it ended as if nothing had happened.

        Raises:
            RunError: a run could not be brought to its end, or ended otherwise.
        """
        whole = self._undisturbed()
        left = list(kills)
        while left or not self.runs:
            out = self.folder / f"run-{self.runs:03d}"
            self._one(out, left)
            self._healed()
            self._prove(whole, out)
            self.runs += 1
            self.heard(f"run {self.runs}: the same as the undisturbed one; {len(left)} kills left")

    def _undisturbed(self) -> Outcome:
        document = self.scenario.document()
        document["placement"] |= {"checkpoint_seconds": _CHECKPOINT_SECONDS}
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "scenario.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
        document["placement"]["backend"] = "inline"
        for _ in prepare(parse(document), self.folder / "undisturbed").releases():
            pass
        return outcome(self.folder / "undisturbed")

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
        self.legs += 1
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
            with process.stdin as orders, process.stdout as said:
                orders.write(json.dumps([asdict(kill) for kill in left]) + "\n")
                orders.flush()
                rows, why = self._listen(process, said, left)
            return rows, process.wait(), why
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()

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
                    self.wound.row()
            elif "kill" in told:
                kill = left.pop(0)
                self._struck(kill)
                if kill.kind == "driver":
                    time.sleep(kill.delay)
                    process.kill()
                    break
                if kill.kind == "node":
                    self.lose_node(kill.pick)
            else:
                why = str(told.get("stopped", ""))
        return rows, why

    def _struck(self, kill: Kill) -> None:
        self._healed()
        self.heard(f"killing: {kill.kind}")
        self.wound = _Wound(kill.kind, time.monotonic())

    def _healed(self) -> None:
        """Count the last kill, now that it is known what became of it."""
        if self.wound is None:
            return
        tally = self.tallies.setdefault(self.wound.kind, Tally())
        tally.kills += 1
        tally.seconds.append(self.wound.longest)
        if self.wound.resumed:
            tally.resumed += 1
        else:
            tally.replaced += 1
        self.wound = None

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
