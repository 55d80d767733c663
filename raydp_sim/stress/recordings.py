"""The recordings beside the stress scenarios: made up, but in the layout of real ones.

Each follows from its seed alone. `python -m raydp_sim.stress.recordings FOLDER` writes them.
"""

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raydp_sim.random import Stream

DAY = 86_400
_HOUR = 3_600
Rows = NDArray[np.int64]


def flash_crowd(clients: int = 4000, regulars: int = 500) -> Rows:
    """Return stays of a day: regulars are there all day, all others come in hour 8.

    Who is called at 8 comes after an exponential time of mean 5 minutes, at most an hour, and stays
    for half an hour.

    Example:
        >>> flash_crowd(3, 1).tolist()[0], len(flash_crowd(3, 1))
        ([0, 0, 86400], 3)
    """
    u = _uniforms("flash crowd", clients)
    come = 8 * _HOUR + np.minimum(np.floor(-300.0 * np.log1p(-u)), _HOUR).astype(np.int64)
    come[:regulars] = 0
    gone = np.where(np.arange(clients) < regulars, DAY, come + _HOUR // 2)
    return np.stack([np.arange(clients), come, gone], axis=1)


def phones(clients: int = 4000) -> Rows:
    """Return stays of a day as phones have them: on a charger at night, now and then by day.

    Clients differ: each has a chance a, uniform to the third power, so that many are hardly ever
    there. The recording begins in the midst of the night. With chance a each a client charges for
    four to eight hours that begin within an hour and a half of hour 0, for half an hour to an hour
    within half an hour of hours 12 and 18, and for half an hour after hour 23. Stays do not
    overlap, and what was before the recording is cut off.

    Example:
        >>> table = phones(200)
        >>> bool((table[:, 1] < table[:, 2]).all()), len(np.unique(table[:, 0])) < 180
        (True, True)
    """
    often = _uniforms("often", clients) ** 3
    parts = []
    for name, first, spread, shortest, longest in (
        ("night", -1.5, 3.0, 4.0, 8.0),
        ("noon", 11.5, 1.0, 0.5, 1.0),
        ("evening", 17.5, 1.0, 0.5, 1.0),
        ("late", 23.0, 0.5, 0.5, 0.5),
    ):
        come = _HOUR * (first + spread * _uniforms(f"{name} begins", clients))
        stay = _HOUR * (shortest + (longest - shortest) * _uniforms(f"{name} lasts", clients))
        there = _uniforms(name, clients) < often
        begins, ends = np.maximum(np.floor(come), 0.0), np.floor(come + stay)
        rows = np.stack([np.arange(clients), begins, ends], axis=1)
        parts.append(rows[there].astype(np.int64))
    whole = np.concatenate(parts)
    return np.asarray(whole[np.lexsort((whole[:, 1], whole[:, 0]))])


TABLES = {"flash-crowd": flash_crowd, "phones": phones}


def text(rows: Rows) -> str:
    """Return a table as the text of a CSV file."""
    return "client,on,off\n" + "".join(f"{c},{on},{off}\n" for c, on, off in rows.tolist())


def _uniforms(name: str, clients: int) -> NDArray[np.float64]:
    ids = np.arange(clients, dtype=np.uint32)
    return np.asarray(Stream(1).at("recordings").clients(ids).uniform(name)[:, 0])


if __name__ == "__main__":
    for name, make in TABLES.items():
        Path(sys.argv[1], f"{name}.csv").write_text(text(make()), encoding="utf-8")
