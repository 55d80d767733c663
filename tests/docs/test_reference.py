"""The field reference is what the schema says, and has every kind."""

from raydp_sim.cli.reference import reference
from raydp_sim.cli.schema import scenario_schema
from raydp_sim.scenario.keys import REGISTRIES
from tests.docs.pages import PAGES, call

FIELDS = PAGES["docs/fields.md"]


def test_the_page_is_up_to_date() -> None:
    """If not: `make docs`."""
    assert call("schema", "--markdown").stdout == FIELDS


def test_every_kind_and_each_of_its_fields_is_there() -> None:
    for registry in REGISTRIES:
        for kind, cls in registry.kinds.items():
            assert f": `{kind}`\n" in FIELDS, kind
            for name in cls.model_fields:
                assert f"| `{name}` |" in FIELDS, (kind, name)
    for kind in ("categorical", "samples", "points", "user-mean", "item-mean"):
        assert f": `{kind}`\n" in FIELDS


def test_a_field_that_is_added_changes_the_page() -> None:
    schema = scenario_schema()
    schema["$defs"]["Placement"]["properties"]["colour"] = {"type": "string", "default": "red"}
    assert reference(schema) != FIELDS


def test_every_field_is_explained() -> None:
    for line in FIELDS.splitlines():
        if line.startswith("| `"):
            assert not line.endswith("|  |"), line
