"""The messages from a run to the process that serves it: a line of JSON, then bytes of a batch."""

import json
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa

SCHEMA, ROWS, PART, END = "schema", "rows", "part", "end"


class Message(NamedTuple):
    """One message: its kind, what it says, and the batch that goes with it, serialised."""

    kind: str
    head: dict[str, Any]
    payload: bytes | memoryview = b""


def pack(message: Message) -> list[bytes | memoryview]:
    """Return a message as what is written, piece by piece."""
    head = {"kind": message.kind, "bytes": len(message.payload), **message.head}
    return [json.dumps(head).encode() + b"\n", message.payload]


def messages(source: BinaryIO) -> Iterator[Message]:
    """Yield messages until the other side is gone.

    Example:
        >>> from io import BytesIO
        >>> [found] = messages(BytesIO(b"".join(pack(Message(END, {"why": "done"})))))
        >>> found.kind, found.head
        ('end', {'why': 'done'})
    """
    while line := source.readline():
        if not line.endswith(b"\n"):
            return  # cut off in the middle: whoever wrote it has died
        head = json.loads(line)
        size = head.pop("bytes")
        payload = source.read(size)
        if len(payload) < size:
            return
        yield Message(head.pop("kind"), head, payload)


def packed_schema(stream: str, schema: pa.Schema) -> Message:
    """Return the message that a stream has begun."""
    return Message(SCHEMA, {"stream": stream}, schema.serialize().to_pybytes())


def packed_rows(stream: str, offset: int, batch: pa.RecordBatch) -> Message:
    """Return the message that a stream has new rows."""
    head = {"stream": stream, "offset": offset, "rows": batch.num_rows}
    return Message(ROWS, head, memoryview(batch.serialize()))
