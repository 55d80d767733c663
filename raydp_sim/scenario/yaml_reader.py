"""YAML for scenario files: plain, and never larger than it looks."""

import re
from typing import Any

import yaml

LARGEST = 4 << 20
"""Bytes of a file at most."""
_DEEPEST = 32
_NODES = 100_000
_ALIASES = 1_000


class Reader(yaml.SafeLoader):
    r"""YAML's safe loader, with four differences.

    - A key given twice is an error and not a silent loss.
    - 1e9 is a number, as in YAML 1.2.
    - Nesting, nodes and aliases are bounded; a node counts as often as aliases repeat it, for
      everything that walks over the document later meets it as often.
    - Nothing may contain itself.

    Example:
        >>> yaml.load("a: &a [1e3, x]\nb: *a", Reader)
        {'a': [1000.0, 'x'], 'b': [1000.0, 'x']}
    """

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._depth = self._total = self._aliases = 0
        self._sizes: dict[int, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose what comes next and count what it will be once aliases are followed."""
        event = self.peek_event()  # type: ignore[no-untyped-call]  # the stubs leave it out
        if isinstance(event, yaml.AliasEvent):
            self._aliases += 1
            node = super().compose_node(parent, index)
            if node is not None and id(node) not in self._sizes:
                raise _problem(f"*{event.anchor} stands inside of what it names", event.start_mark)
            self._count(self._sizes.get(id(node), 0), event)
            return node
        before = self._total
        self._count(1, event)
        self._depth += 1
        if self._depth > _DEEPEST:
            why = f"it is nested more than {_DEEPEST} levels deep; write it flat"
            raise _problem(why, event.start_mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        self._sizes[id(node)] = self._total - before
        return node

    def _count(self, nodes: int, event: Any) -> None:
        self._total += nodes
        if self._total > _NODES:
            why = f"it has more than {_NODES:,} values once aliases are followed"
        elif self._aliases > _ALIASES:
            why = f"it has more than {_ALIASES:,} aliases"
        else:
            return
        raise _problem(f"{why}; write it plainly", event.start_mark)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Make a mapping whose keys are words, each given once."""
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _problem("a key must be a word", key.start_mark)
            if key.tag != "tag:yaml.org,2002:merge" and key.value in seen:
                raise _problem(f"the key '{key.value}' is given twice", key.start_mark)
            seen.add(key.value)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


def _problem(why: str, mark: Any) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, why, mark)


# YAML 1.1, which the loader speaks, wants a dot and a sign: it reads 1e9 as text.
Reader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)
