"""Clients as they were recorded."""

from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raydp_sim.errors import InputError
from raydp_sim.population.availability.base import Availability, Mask
from raydp_sim.population.intervals import check_clients, load
from raydp_sim.population.moments import Times
from raydp_sim.random import Stream


class Trace(Availability):
    r"""Stays from a table: client `client` is there from second `on` until just before `off`.

    The table is a `.csv` (with a header) or `.parquet` file with the columns client (a number from
    0), on and off (seconds of virtual time), sorted by client and on, without overlaps; other
    columns are not looked at. Clients without a row are never there. Every process that asks reads
    the file once. `raydp-sim traces` makes such tables of public recordings and checks them.

    Fields:
        path: the table; a relative path starts at the scenario file's folder.
        repeat: whether the recording starts anew when it is over; otherwise nobody is there then.
        length: seconds after which it starts anew; by default its last `off`.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "trace.csv"
        ...     _ = file.write_text("client,on,off\n0,0,6\n2,3,9\n")
        ...     Trace(path=str(file), repeat=True).available(np.arange(3), 13.0, Stream(1)).tolist()
        [True, False, True]
    """

    kind: ClassVar[str] = "trace"
    path: str
    repeat: bool = False
    length: Annotated[float, Field(gt=0, le=1e12)] | None = None

    def available(self, ids: NDArray[Any], time: Times, stream: Stream) -> Mask:
        """Look the clients' moments up; nothing is drawn."""
        stays = load(self.path)
        times = np.broadcast_to(np.asarray(time, dtype=np.float64), (len(ids),))
        return stays.there(ids, np.mod(times, self._length()) if self.repeat else times)

    def rate(self) -> float:
        """Return the part of the recording that its clients are there."""
        return load(self.path).share(self._length())

    def reachable(self, clients: int) -> int:
        """Return how many clients the recording has."""
        return len(np.unique(load(self.path).client))

    def check(self, clients: int) -> str | None:
        """Refuse a table that cannot be read, or not for so many clients."""
        try:
            stays = load(self.path)
            check_clients(self.path, stays, clients)
        except InputError as error:
            return f"path is {self.path!r}; {str(error).removeprefix(f'{self.path}: ')}"
        if self.length is not None and self.length < stays.end:
            last = f"the last interval of {self.path} ends at {stays.end:g}"
            return f"length is {self.length:g}; {last}; raise it or leave it out"
        return None

    def located(self, folder: Path) -> "Trace":
        """Anchor a relative path at the scenario file's folder."""
        return self.model_copy(update={"path": str(folder / self.path)})

    def _length(self) -> float:
        return load(self.path).end if self.length is None else self.length
