"""Streams while a run is played: served over Arrow Flight by a process of their own.

The actor that writes the streams hands rows to that process through a pipe (`feed.py`, `wire.py`)
and never waits for it: what does not fit into a bounded queue is read from Parquet later. The
process keeps the last rows (`store.py`), answers followers (`service.py`) whose tokens open what
they ask for (`access.py`), and ends with the run, whatever a follower does.
"""
