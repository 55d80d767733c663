"""Device classes and regions side by side: who took part, what it cost, who is represented."""

from typing import Any

import numpy as np
import pyarrow.compute as pc

from raydp_sim.metrics import streams
from raydp_sim.privacy.ledger.ledger import Ledger
from raydp_sim.run.directory import RunDir
from raydp_sim.scenario import Scenario


def by_group(scenario: Scenario, ledger: Ledger, repetition: int = 0) -> list[dict[str, Any]]:
    """Return, for each group of clients, how often they took part and what they have spent.

    Args:
        scenario: that was played.
        ledger: of the repetition, as it stands.
        repetition: which one; clients are in groups by a draw of it.

    Returns:
        Per group its clients, their participations (mean, and the share of clients without any),
        its share of the clients and of all reports, and epsilon of its median and its worst client.
    """
    people, rows = scenario.population, []
    ids = np.arange(people.clients, dtype=np.uint32)
    members = people.members(ids, scenario.stream(repetition))
    epsilons, turns = ledger.epsilons(), ledger.participations()
    everyone = max(1, int(turns.sum()))
    for place, name in enumerate(people.groups):
        own = members == place
        if not own.any():
            continue
        spent = epsilons[own]
        rows.append(
            {
                "group": name,
                "clients": int(own.sum()),
                "share_of_clients": float(own.mean()),
                "share_of_reports": float(turns[own].sum() / everyone),
                "participations": float(turns[own].mean()),
                "never": float((turns[own] == 0).mean()),
                "epsilon": {
                    "median": float(np.quantile(spent, 0.5, method="inverted_cdf")),
                    "max": float(spent.max()),
                },
            }
        )
    return rows


def breakdown(scenario: Scenario, run: RunDir, ledger: Ledger) -> dict[str, Any]:
    """Return the section `breakdown` of a summary, of the first repetition.

    `squared_error` is the distance of the last estimate from the mean of the group's own clients:
    a group that reports less than its share is further away. Only a simulation knows it.

    Args:
        scenario: that was played.
        run: its directory.
        ledger: of the first repetition.
    """
    rows = by_group(scenario, ledger)
    found = streams.read(run.metrics, "groups")
    if found.num_rows:
        first = found.filter(pc.equal(found["repetition"], 0))
        last = first.filter(pc.equal(first["release"], pc.max(first["release"])))
        names, errors = (last[name].to_pylist() for name in ("group", "squared_error"))
        off = dict(zip(names, errors, strict=True))
        rows = [{**row, "squared_error": off.get(row["group"])} for row in rows]
    return {"by": scenario.population.grouped_by, "groups": rows}
