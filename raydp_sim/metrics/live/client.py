"""Following a served run from anywhere: `connect(url, token).follow("releases")`."""

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from raydp_sim.errors import InputError, RunError
from raydp_sim.metrics.live.access import VARIABLE


def connect(url: str, token: str | None = None, certificate: str | Path | None = None) -> "Client":
    """Connect to a run that is served.

    Args:
        url: as `raydp-sim run --serve` prints it: grpc://host:port, or grpc+tls://host:port.
        token: as it prints it, or as it was given; None: the environment's `RAYDP_SIM_TOKEN`.
        certificate: PEM file with the certificate that signed the server's; None: the system's.

    Raises:
        InputError: the token is not accepted, or nobody answers.
    """
    given = token or os.environ.get(VARIABLE)
    if not given:
        raise InputError(f"there is no token; give one, or set {VARIABLE}")
    if not url.startswith(("grpc://", "grpc+tls://", "grpc+tcp://")):
        raise InputError(f"the address is {url!r}; write grpc://host:port or grpc+tls://host:port")
    roots = Path(certificate).read_bytes() if certificate is not None else None
    try:
        client = flight.connect(url, tls_root_certs=roots)
    except pa.ArrowException as error:
        raise InputError(f"the address is {url!r}; {_first(error)}") from None
    made = Client(client, url, given)
    made.runs()
    return made


class Client:
    """A served run, as its token shows it."""

    def __init__(self, client: Any, url: str, token: str) -> None:
        self._client, self.url = client, url
        headers = [(b"authorization", f"Bearer {token}".encode())]
        self._options = flight.FlightCallOptions(headers=headers)

    def runs(self) -> list[dict[str, Any]]:
        """Return what is served: the name of each run, what it plays and its state."""
        with _translated(self.url):
            (found,) = list(self._client.do_action(flight.Action("runs", b""), self._options))
        runs: list[dict[str, Any]] = json.loads(found.body.to_pybytes())
        return runs

    def streams(self) -> dict[str, pa.Schema]:
        """Return the schemas of the streams that the token opens, by name."""
        with _translated(self.url):
            found = list(self._client.list_flights(options=self._options))
        return {info.descriptor.path[-1].decode(): info.schema for info in found}

    def follow(self, stream: str, start: int | str = 0) -> "Following":
        """Follow a stream until the run is over.

        Args:
            stream: such as `releases`; one that ships may still be to come.
            start: the offset of the first row; 0 is the beginning, `live` what comes from now on.

        Raises:
            InputError: the token opens no such stream.
        """
        if start != "live" and not (isinstance(start, int) and start >= 0):
            raise InputError(f"start is {start!r}; give an offset of at least 0, or 'live'")
        with _translated(self.url):
            path = flight.FlightDescriptor.for_path(stream)
            info = self._client.get_flight_info(path, self._options)
        return self._rows(stream, info.total_records if start == "live" else int(start))

    def read(self, stream: str, start: int = 0) -> pa.Table:
        """Return the rows that a stream has now, from an offset on."""
        return self._rows(stream, start, follow=False).to_table()

    def _rows(self, stream: str, start: int, follow: bool = True) -> "Following":
        ticket = {"stream": stream, "start": start, "follow": follow}
        call = flight.Ticket(json.dumps(ticket).encode()), self._options
        return Following(lambda: self._client.do_get(*call), self.url, start)

    def close(self) -> None:
        """Hang up."""
        self._client.close()


class Following:
    """The rows of a stream as they come: iterate over it for record batches.

    Attributes:
        offset: of the next row; following again from there leaves out nothing and repeats nothing.
    """

    def __init__(self, call: Callable[[], Any], url: str, offset: int) -> None:
        self._call, self._url, self.offset = call, url, offset
        self._opened: Any = None
        self._closed = False

    @property
    def _reader(self) -> Any:
        """The call, made when rows are first asked for: of a stream to come it waits for it."""
        if self._opened is None:
            self._opened = self._call()
        return self._opened

    @property
    def schema(self) -> pa.Schema:
        """Of the batches; known when the stream has begun."""
        with _translated(self._url, self):
            return self._reader.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while not self._closed:
            with _translated(self._url, self):
                try:
                    chunk = self._reader.read_chunk()
                except StopIteration:
                    return
                except flight.FlightCancelledError:
                    return
            self.offset = int(chunk.app_metadata.to_pybytes()) + chunk.data.num_rows
            yield chunk.data

    def to_table(self) -> pa.Table:
        """Return all rows; of a run that is being played, when it is over."""
        return pa.Table.from_batches(list(self), self.schema)

    def to_pandas(self) -> Any:
        """Return all rows as a pandas data frame, when the run is over."""
        return self.to_table().to_pandas()

    def to_polars(self) -> Any:
        """Return all rows as a Polars data frame, when the run is over."""
        import polars

        return polars.from_arrow(self.to_table())

    def close(self) -> None:
        """Stop following; another thread that waits for rows gets no more."""
        self._closed = True
        if self._opened is not None:
            self._opened.cancel()


@contextlib.contextmanager
def _translated(url: str, following: Following | None = None) -> Iterator[None]:
    """Turn Flight's errors into ours."""
    try:
        yield
    except flight.FlightUnauthenticatedError:
        raise InputError(f"{url}: the token is not accepted") from None
    except flight.FlightUnavailableError:
        if following is None:
            raise InputError(f"{url}: nobody answers there") from None
        raise RunError(
            f"{url}: the run was interrupted; when it is resumed, follow from offset "
            f"{following.offset}"
        ) from None
    except pa.ArrowException as error:
        raise InputError(f"{url}: {_first(error)}") from None


def _first(error: BaseException) -> str:
    """Return what the server said, without gRPC's remarks."""
    text = str(error).split(". gRPC client debug context")[0].split(". Detail:")[0]
    return text.splitlines()[0] if text else type(error).__name__
