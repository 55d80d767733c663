"""The field reference of scenario files, written from their JSON schema as Markdown."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

_HEAD = """# Fields of a scenario file

Printed by `raydp-sim schema --markdown` from the schema that files are checked against; a test
fails where this page differs from it. A field without a default must be given. *none* means that
there is no value unless it is given, or that it follows from the rest. Any field may be replaced on
the command line, `--set section.field=value`, and in Python, `section__field=value`.

For completion in an editor run `raydp-sim schema > raydp-sim.schema.json` and begin the file with
`# yaml-language-server: $schema=raydp-sim.schema.json`.
"""
_CHOICE = "{} Chosen by `kind`: {}; or a class of your own, `kind: package.module:Class`."
_FILES = {"Scenario": "The file", "FigureFile": "A file with a figure"}
_LIMITS = (
    ("exclusiveMinimum", "> "),
    ("minimum", ">= "),
    ("exclusiveMaximum", "< "),
    ("maximum", "<= "),
)
_TYPES = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "boolean": "`true` or `false`",
    "object": "mapping",
}
_EXPLAINED = {
    "Dataset": "What each client holds.",
    "Partition": "Who holds which samples of labelled data ([more](learning-data.md)).",
    "Availability": "When each client can be reached, in seconds of virtual time.",
    "Latency": "How long a report takes, in seconds of virtual time from the ask.",
    "Participation": "Who takes part, and when a batch closes ([more](clients.md)).",
    "Task": "What is learned.",
    "Classifier": "What is trained ([more](learning.md)).",
    "Schedule": "Step sizes of training, round by round; a plain number is a constant one.",
    "Optimizer": "What the server makes of the mean gradient; it costs no privacy.",
    "Projection": "The convex set that parameters are kept in.",
    "Mechanism": """What a client, or a trusted aggregator, does to a value before it is released.
One guarantee is given: `epsilon_local` of one report (`epsilon` of one release for central kinds;
with `delta_local` or `delta` for Gaussian noise), or a `target` of the whole run.""",
}


def reference(schema: Schema) -> str:
    """Write every section, kind, field, default and range of a schema as Markdown.

    Example:
        >>> latency = {
        ...     "description": "Always the same.",
        ...     "properties": {"seconds": {"type": "number", "minimum": 0, "default": 0.0}},
        ... }
        >>> print(reference({"$defs": {"Scenario": latency}}).partition("## ")[2])
        The file
        <BLANKLINE>
        Always the same.
        <BLANKLINE>
        | field | default | values | meaning |
        | --- | --- | --- | --- |
        | `seconds` | 0.0 | number >= 0 |  |
        <BLANKLINE>
    """
    definitions = schema["$defs"]
    found: dict[str, str] = {}
    for name, heading in _FILES.items():
        if name in definitions:
            found[name] = heading
            # A section that comes again, as those of device classes do, is described once.
            for below, path in _sections("", definitions[name], definitions):
                found.setdefault(below, path)
    parts = [_HEAD]
    for name, path in found.items():
        parts += _described(name, path, definitions[name], _Links(found))
    return "\n".join(parts)


class _Links(dict[str, str]):
    """Where a definition of the schema is described."""

    def to(self, ref: str) -> str:
        path = self[ref.rsplit("/", 1)[-1]]
        return f"[{path}](#{anchor(path)})"


def anchor(heading: str) -> str:
    """Return the anchor that Markdown viewers give a heading.

    Example:
        >>> anchor("population.data: `file`")
        'populationdata-file'
    """
    kept = "".join(c for c in heading.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")


def _sections(
    path: str, section: Schema, definitions: Schema, above: tuple[str, ...] = ()
) -> Iterator[tuple[str, str]]:
    """Yield every section below one, by its name in the schema, with its path in the file.

    A section that a piece of its own may hold is not entered again.
    """
    for kind in section.get("oneOf", (section,)):
        for name, field in kind.get("properties", {}).items():
            for ref in _refs(field):
                below = ref.rsplit("/", 1)[-1]
                inner = f"{path}.{name}".lstrip(".")
                yield below, inner
                if below not in above:
                    yield from _sections(inner, definitions[below], definitions, (*above, below))


def _refs(field: Schema) -> Iterator[str]:
    if "$ref" in field:
        yield field["$ref"]
    for inner in (*field.get("anyOf", ()), field.get("items"), _named(field)):
        if inner is not None:
            yield from _refs(inner)


def _named(field: Schema) -> Schema | None:
    """Return what the values of a mapping with names of the user's choice are."""
    found = field.get("additionalProperties", *field.get("patternProperties", {}).values())
    return found if isinstance(found, dict) else None


def _described(definition: str, path: str, section: Schema, link: _Links) -> Iterator[str]:
    yield f"## {path}\n"
    if "oneOf" not in section:
        yield f"{section['description']}\n"
        yield from _table(section, section["properties"], link)
        return
    # Other choices are a class of the user's own, and a plain number.
    named = [(kind.get("properties", {}).get("kind", {}), kind) for kind in section["oneOf"]]
    kinds = {name["const"]: kind for name, kind in named if "const" in name}
    names = ", ".join(f"[{kind}](#{anchor(f'{path}: {kind}')})" for kind in kinds)
    yield _CHOICE.format(_EXPLAINED.get(definition, ""), names).strip() + "\n"
    shared = _shared([kind["properties"] for kind in kinds.values()])
    if shared:
        yield "Fields of every kind:\n"
        yield from _table({}, shared, link)
    for name, kind in kinds.items():
        own = {k: v for k, v in kind["properties"].items() if k not in {*shared, "kind"}}
        yield f"### {path}: `{name}`\n"
        yield f"{kind['description']}\n"
        if own:
            yield from _table(kind, own, link)


def _shared(kinds: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the fields that mean the same in every kind, if there are several."""
    first, *others = kinds
    same = {k: v for k, v in first.items() if all(kind.get(k) == v for kind in others)}
    return same if others else {}


def _table(section: Schema, fields: Schema, link: _Links) -> Iterator[str]:
    required = section.get("required", ())
    rows = ["| field | default | values | meaning |", "| --- | --- | --- | --- |"]
    for name, field in fields.items():
        default = "" if name in required else _default(field)
        meaning = field.get("description", "").replace("|", "\\|")
        rows.append(f"| `{name}` | {default} | {_values(field, link)} | {meaning} |")
    yield "\n".join(rows) + "\n"


def _default(field: Schema) -> str:
    value = field.get("default")
    if isinstance(value, dict):
        return f"`{value['kind']}`" if "kind" in value else "as below"
    if value is None or value in ("", [], {}):
        return "*none*"
    return f"`{value}`" if isinstance(value, str) else json.dumps(value)


def _values(field: Schema, link: _Links) -> str:
    """Say what a field may hold: a section, one of some words, or a type with its range."""
    if "$ref" in field:
        return link.to(field["$ref"])
    if "anyOf" in field:
        said = [_values(one, link) for one in field["anyOf"] if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(said))
    if "const" in field:
        return f"`{json.dumps(field['const']).strip(chr(34))}`"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if field["type"] == "array":
        inner = field.get("items", {})
        return f"list of: {_values(inner, link)}" if inner else "list"
    if (named := _named(field)) is not None:
        return f"names, each with: {_values(named, link)}"
    limits = [f"{sign}{_number(field[key])}" for key, sign in _LIMITS if key in field]
    return " ".join([_TYPES[field["type"]], " and ".join(limits)]).strip()


def _number(value: float) -> str:
    """Write a limit so that it can be read; many are the sizes of what numbers are kept in.

    Example:
        >>> [_number(limit) for limit in (0.01, 1000, 1e12, 2**20, 2**31 - 1)]
        ['0.01', '1000', '1e12', '2^20', '2147483647']
    """
    whole = int(value)
    if whole >= 2**16 and whole & (whole - 1) == 0:
        return f"2^{whole.bit_length() - 1}"
    short = f"{value:g}".replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")
    return short if float(short) == value else str(value)
