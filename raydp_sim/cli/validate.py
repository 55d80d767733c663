"""`raydp-sim validate`: check scenario files without running them."""

import json
from pathlib import Path

import click

from raydp_sim import figures
from raydp_sim.cli import shipped
from raydp_sim.document import read
from raydp_sim.errors import InputError
from raydp_sim.figures.model import is_figure
from raydp_sim.registry import search_also
from raydp_sim.scenario import load

_EPILOG = """\b
Example:
  raydp-sim validate scenarios/*.yaml
  raydp-sim validate quickstart --json
"""


@click.command("validate", epilog=_EPILOG)
@click.argument("scenarios", metavar="SCENARIO...", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as one JSON document.")
@click.pass_context
def command(ctx: click.Context, scenarios: tuple[str, ...], as_json: bool) -> None:
    """Check every SCENARIO, files or names of those that ship; nothing is run or written."""
    findings = []
    for scenario in scenarios:
        path = shipped.find(scenario)
        search_also(Path.cwd(), path.parent)
        finding: dict[str, str | bool | None] = {"path": str(path), "valid": True, "error": None}
        try:
            if is_figure(read(path)):
                figures.load(path)
            else:
                load(path)
        except InputError as error:
            finding.update(valid=False, error=str(error))
            click.echo(f"raydp-sim: {error}", err=True)
        else:
            if not as_json:
                click.echo(f"{path}: valid")
        findings.append(finding)
    if as_json:
        click.echo(json.dumps(findings, indent=2))
    if not all(finding["valid"] for finding in findings):
        ctx.exit(2)
