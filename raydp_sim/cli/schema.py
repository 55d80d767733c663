"""`raydp-sim schema`: what a scenario file may say, for editors."""

import json
from typing import Any

import click

from raydp_sim.cli.reference import reference
from raydp_sim.figures.model import (
    Bandit,
    Claim,
    Curve,
    Figure,
    FigureFile,
    Fixed,
    Frequencies,
    Panel,
    Problem,
    Sketched,
)
from raydp_sim.metrics.reference import reference as streams_reference
from raydp_sim.scenario.schema import explained, simulation_schema, untitled

_EPILOG = """\b
Example:
  raydp-sim schema > raydp-sim.schema.json
  raydp-sim schema --markdown > docs/fields.md
  raydp-sim schema --streams
"""


@click.command("schema", epilog=_EPILOG)
@click.option("--markdown", is_flag=True, help="Print it as a page to read instead.")
@click.option("--streams", is_flag=True, help="Print the columns of a run's streams instead.")
def command(markdown: bool, streams: bool) -> None:
    """Print the JSON schema of scenario files: every section, kind, field and default."""
    if streams:
        click.echo(streams_reference())
        return
    schema = scenario_schema()
    text = reference(schema) if markdown else json.dumps(schema, indent=2) + "\n"
    click.echo(text, nl=False)


def scenario_schema() -> dict[str, Any]:
    """Return the JSON schema of scenario files: simulations, and figures to compute.

    A file with a `figure` is read as the latter. Each section of a simulation that has a `kind` is
    a choice among the registered pieces.

    Example:
        >>> kinds = scenario_schema()["$defs"]["Latency"]["oneOf"]
        >>> [kind["properties"]["kind"].get("const") for kind in kinds]
        ['constant', 'lognormal', 'pareto', None]
    """
    simulation, figure = simulation_schema(), _figure()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {
            **simulation.pop("$defs"),
            **figure.pop("$defs"),
            "Scenario": simulation,
            "FigureFile": figure,
        },
        "type": "object",
        # Again at the top, where editors look for keys to complete.
        "properties": {**figure["properties"], **simulation["properties"]},
        "if": {"required": ["figure"]},
        "then": {"$ref": "#/$defs/FigureFile"},
        "else": {"$ref": "#/$defs/Scenario"},
    }


def _figure() -> dict[str, Any]:
    document = FigureFile.model_json_schema()
    for cls in (
        FigureFile,
        Figure,
        Panel,
        Problem,
        Sketched,
        Curve,
        Bandit,
        Frequencies,
        Sketched,
        Fixed,
        Claim,
    ):
        explained(document if cls is FigureFile else document["$defs"][cls.__name__], cls)
    for target in (document, *document["$defs"].values()):
        untitled(target)
    return document
