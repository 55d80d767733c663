"""Charge releases to a million clients, write them, read them back: ledger_load.py DIR RELEASES.

Prints one JSON document: the peak of the process's memory and what both ledgers ended with.
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from raydp_sim.bench.scale import peak
from raydp_sim.privacy.events import LocalReport, Shuffle
from raydp_sim.privacy.ledger import store
from raydp_sim.privacy.ledger.filter import Filter
from raydp_sim.privacy.ledger.histories import replayed, standing
from raydp_sim.privacy.ledger.ledger import Ledger
from raydp_sim.privacy.ledger.sizes import rounded

CLIENTS, DELTA = 10**6, 1e-8
SMALLEST, LARGEST = 1000, 100_000


def main() -> None:
    folder, releases, draw = Path(sys.argv[1]), int(sys.argv[2]), np.random.default_rng(5)
    event, budget = LocalReport(1.0), Filter(0.6, DELTA)
    ledger, writer = Ledger(CLIENTS, DELTA), store.Writer(folder, CLIENTS)
    for release in range(releases):
        size = int(np.exp(draw.uniform(np.log(SMALLEST), np.log(LARGEST))))
        members = np.unique(draw.integers(0, CLIENTS, size, dtype=np.uint32))
        batch = rounded(Shuffle(1.0, len(members)))
        charge = store.Charge(0, release, float(release), event, members, batch)
        writer.append(charge)
        ledger.charge(event, members, batch)
        if release % 10 == 9:
            charged = ledger.guarantee()
            able = ledger.able(event, rounded(Shuffle(1.0, SMALLEST)), budget)
    del ledger
    writer.compact()
    again = replayed(store.charges(folder), Ledger(CLIENTS, DELTA))
    found = standing(again)
    document = {
        "rows": store.read(folder).num_rows,
        "peak_bytes": peak(),
        "cpu_s": time.process_time(),
        "charged": [charged.epsilon, charged.median],
        "replayed": [found.guarantee.epsilon, found.guarantee.median],
        "able": float(able.mean()),
    }
    print(json.dumps(document))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # threads of Arrow may outlive the interpreter's end and abort it; all is said
