"""A run as one token sees it: every document is made from this, so nothing else can get out."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import yaml
from numpy.typing import NDArray

from raydp_sim.metrics import columns, streams
from raydp_sim.metrics.described import LEDGER, RELEASED, SIMULATION_ONLY, VISIBILITIES
from raydp_sim.metrics.live.access import Grant
from raydp_sim.metrics.page.source import Source, document, scenario

# Of a scenario, what a reader of the protocol knows. The rest tells what is true of the data, and
# the seed would undo all noise.
_PROTOCOL = (
    "name",
    "description",
    "trust",
    "task",
    "mechanism",
    "privacy",
    "shuffle",
    "participation",
    "repeat",
)


class Seen:
    """A run, as far as a token opens it.

    Args:
        name: of the run, in its folder.
        source: where its tables are.
        grant: what the token opens.
    """

    def __init__(self, name: str, source: Source, grant: Grant) -> None:
        self.name, self.source, self.grant = name, source, grant

    @cached_property
    def schemas(self) -> dict[str, pa.Schema]:
        """The streams that are open, in the order of their names."""
        found = self.source.schemas()
        return {name: found[name] for name in sorted(found) if self._opens(found[name])}

    def _opens(self, schema: pa.Schema) -> bool:
        marks = schema.metadata or {}
        mark, reader = (marks.get(key, b"").decode() for key in (b"visibility", b"reader"))
        return mark in VISIBILITIES and self.grant.opens(mark, reader or None)

    def table(self, stream: str, names: Sequence[str] | None = None) -> pa.Table:
        """Return rows of a stream; of one that is not open, none."""
        if stream not in self.schemas:
            known = columns.known(stream)
            plain = pa.schema([(name, pa.int64()) for name in streams.KEY])
            return (columns.schema(stream) if known else plain).empty_table()
        return self.source.table(stream, names)

    def column(self, rows: pa.Table, name: str) -> NDArray[np.float64]:
        """Return a column as numbers; what is null, or not there, is not a number."""
        if name not in rows.column_names:
            return np.full(rows.num_rows, np.nan)
        return np.asarray(rows[name].cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)

    @property
    def released(self) -> bool:
        """Whether what is released to all is open."""
        return self.grant.opens(RELEASED, None)

    @property
    def simulated(self) -> bool:
        """Whether what only a simulation knows is open."""
        return self.grant.opens(SIMULATION_ONLY, None)

    @property
    def charged(self) -> bool:
        """Whether the ledger is open: who took part."""
        return self.grant.opens(LEDGER, None)

    @cached_property
    def _document(self) -> dict[str, Any]:
        return scenario(self.source.path)

    @cached_property
    def about(self) -> dict[str, Any]:
        """What everyone with a token is told, as over Flight."""
        found = self._document
        task, people = (_section(found, name) for name in ("task", "population"))
        return {
            "name": self.name,
            "scenario": str(found.get("name", "")),
            "state": self.source.state(),
            "clients": people.get("clients"),
            "rounds": task.get("rounds"),
            "repeat": found.get("repeat", 1),
            "trust": found.get("trust", ""),
        }

    @cached_property
    def scenario(self) -> dict[str, Any]:
        """The scenario: all of it, or what a reader of the protocol knows, or nothing."""
        if self.simulated:
            return self._document
        if not self.released:
            return {}
        return {name: self._document[name] for name in _PROTOCOL if name in self._document}

    def kind(self, section: str) -> str:
        """Return the kind of a section of the scenario, such as of the task."""
        return str(_section(self.scenario, section).get("kind", ""))

    def scenario_text(self) -> str | None:
        """Return the scenario as a file has it; None if it is not open."""
        if self.simulated:
            try:
                return (self.source.path / "scenario.yaml").read_text(encoding="utf-8")
            except (OSError, ValueError):
                return None
        if not self.scenario:
            return None
        text: str = yaml.safe_dump(self.scenario, sort_keys=False, allow_unicode=True)
        return text

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The summary, whoever may see it; empty while the run is not over."""
        return document(self.source.path / "summary.json")

    @cached_property
    def total(self) -> int | None:
        """How many releases there will be."""
        rounds, repeat = self.about["rounds"], self.about["repeat"]
        known = isinstance(rounds, int) and isinstance(repeat, int)
        return rounds * repeat if known else None


def _section(found: dict[str, Any], name: str) -> dict[str, Any]:
    section = found.get(name)
    return section if isinstance(section, dict) else {}
