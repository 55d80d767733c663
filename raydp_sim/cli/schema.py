"""`raydp-sim schema`: what a scenario file may say, for editors."""

import json

import click

from raydp_sim.schema import scenario_schema

_EPILOG = """\b
Example:
  raydp-sim schema > raydp-sim.schema.json
"""


@click.command("schema", epilog=_EPILOG)
def command() -> None:
    """Print the JSON schema of scenario files: every section, kind, field and default."""
    click.echo(json.dumps(scenario_schema(), indent=2))
