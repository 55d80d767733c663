"""The reference of the streams, as tables of a page."""

from raydp_sim.metrics.columns import KEYS, STREAMS


def reference() -> str:
    """Return every stream that ships with its columns, as Markdown."""
    return "\n".join(_stream(name) for name in STREAMS)


def _stream(name: str) -> str:
    found = STREAMS[name]
    lines = [
        f"### {name}",
        "",
        f"Version {found.version}, {found.visibility}. A row is {found.row}.",
        "",
        "| column | type | unit | meaning |",
        "| --- | --- | --- | --- |",
    ]
    for column, about in {**KEYS, **found.columns}.items():
        lines.append(f"| `{column}` | {about.type} | {about.unit} | {about.meaning} |")
    return "\n".join([*lines, ""])
