"""Clients that come and go in bursts."""

from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raydp_sim.population.availability.base import Availability, Mask
from raydp_sim.population.moments import Numbers, Times, numbers, uniforms
from raydp_sim.random import Stream

_EVENTS = 64  # of one cell; a Poisson variable of mean 1 is larger with probability below 1e-89
_STEPS = 4096


class Markov(Availability):
    """A two-state Markov chain in continuous time: stays and absences of exponential length.

    Such a chain is renewed at the events of a Poisson process: with rates a = 1/mean_on of leaving
    and b = 1/mean_off of coming, its generator is (a + b)(P - I), where both rows of P are the
    stationary law; so at every event of rate a + b the state is drawn anew from that law
    (uniformization, Jensen 1953). The state at a moment is the one drawn at the last event before.

    For random access time is cut into cells of mean one event. The events of a cell are laid out
    from its end backwards by keyed exponential gaps, and a question walks back from the end of its
    cell, through as many empty cells as there are, to the event it needs: about two draws per
    client, few at most, and never a state that must be carried forward. Nothing is restarted at the
    borders of the cells, so the chain is the stationary one for all time.

    Fields:
        mean_on: mean length of a stay, in seconds of virtual time.
        mean_off: mean length of an absence.

    Example:
        >>> bursty = Markov(mean_on=30.0, mean_off=90.0)
        >>> there = bursty.available(np.arange(1000), 1e6, Stream(1))
        >>> 180 < int(there.sum()) < 320, bursty.rate()
        (True, 0.25)
    """

    kind: ClassVar[str] = "markov"
    # Not plain on and off, which YAML reads as true and false.
    mean_on: Annotated[float, Field(ge=1e-6, le=1e12)]
    mean_off: Annotated[float, Field(ge=1e-6, le=1e12)]

    def available(self, ids: NDArray[Any], time: Times, stream: Stream) -> Mask:
        """Look up the state drawn at the last event before each client's moment."""
        events = self._last_events(ids, time, stream)
        return np.asarray(uniforms(stream, ids, events, "state") < self.rate())

    def rate(self) -> float:
        """Return the stationary probability of being there."""
        return self.mean_on / (self.mean_on + self.mean_off)

    def _last_events(self, ids: NDArray[Any], time: Times, stream: Stream) -> Numbers:
        """Return each client's last event, numbered by 64 times its cell plus its place there."""
        cell_length = 1.0 / (1.0 / self.mean_on + 1.0 / self.mean_off)
        cells = numbers(ids, time, cell_length)
        found = cells * _EVENTS
        # How far into its cell the question reaches, and where the walk stands, in cells.
        reach = np.asarray(time) / cell_length - cells
        rows, event, place = np.arange(len(ids)), found.copy(), np.ones(len(ids))
        for _ in range(_STEPS):
            gaps = -np.log1p(-uniforms(stream, ids[rows], event, "gap"))
            place = place - gaps
            met = (place >= 0.0) & (place <= reach)
            found[rows] = event
            left = ~met
            if not left.any():
                break
            rows, event, place, reach = rows[left], event[left], place[left], reach[left]
            # Past the start of the cell, or out of numbers: on from the end of the one before.
            over = (place < 0.0) | (event % _EVENTS == _EVENTS - 1)
            event = np.where(over, (event // _EVENTS - 1) * _EVENTS, event + 1)
            place, reach = np.where(over, 1.0, place), np.where(over, 1.0, reach)
        return found
