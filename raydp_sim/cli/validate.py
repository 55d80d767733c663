"""`raydp-sim validate`: check scenario files without running them."""

import json
import math
from pathlib import Path
from typing import Any

import click

from raydp_sim import figures
from raydp_sim.cli import shipped
from raydp_sim.cli.phrases import epsilon, expected_error
from raydp_sim.cli.tables import wrapped_for_stderr
from raydp_sim.cli.waiting import waiting
from raydp_sim.errors import InputError
from raydp_sim.registry import search_also
from raydp_sim.run.advice import warning
from raydp_sim.run.preflight import plan
from raydp_sim.scenario import Scenario, load
from raydp_sim.scenario.document import is_figure, read

_EPILOG = """\b
Example:
  raydp-sim validate scenarios/*.yaml
  raydp-sim validate quickstart --set population.clients=2000 --json
"""


@click.command("validate", epilog=_EPILOG)
@click.argument("scenarios", metavar="SCENARIO...", nargs=-1, required=True)
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="A.B=VALUE",
    help="Replace a field of every scenario first, as in `run`; may be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as one JSON document.")
@click.pass_context
def command(
    ctx: click.Context, scenarios: tuple[str, ...], assignments: tuple[str, ...], as_json: bool
) -> None:
    """Check every SCENARIO, files or names of those that ship; nothing is run or written.

    Of a simulation it also says, on standard error, what it plans to cost a client and the error
    to expect, and warns if the trivial answer would be as good, naming the setting to change.
    """
    findings = []
    for scenario in scenarios:
        path = shipped.find(scenario)
        search_also(Path.cwd(), path.parent)
        finding: dict[str, Any] = {"path": str(path), "valid": True, "error": None}
        foreseen: list[str] = []
        try:
            document = read(path)
            if is_figure(document):
                figures.load(path, assignments)
            else:
                with waiting(document, assignments):
                    foreseen = _foresee(load(path, assignments), finding)
        except InputError as error:
            finding.update(valid=False, error=str(error))
            click.echo(wrapped_for_stderr(f"raydp-sim: {error}"), err=True)
        else:
            if not as_json:
                click.echo(f"{path}: valid")
            for line in foreseen:
                click.echo(wrapped_for_stderr(f"{path}: {line}"), err=True)
        findings.append(finding)
    if as_json:
        click.echo(json.dumps(findings, indent=2))
    if not all(finding["valid"] for finding in findings):
        ctx.exit(2)


def _foresee(scenario: Scenario, finding: dict[str, Any]) -> list[str]:
    """Add what the scenario plans to a finding, and say it."""
    planned = plan(scenario, 1)
    found = planned.prediction
    finding["planned"] = {
        "epsilon": planned.epsilon if math.isfinite(planned.epsilon) else None,
        "delta": scenario.privacy.delta,
        "min_batch": planned.least,
        "data": planned.data,
        "prediction": None if found is None else found.document(),
    }
    finding["warning"] = warning(scenario, found)
    cost = f"epsilon {epsilon(planned.epsilon)} for a client in every release"
    said = f"{cost}; {expected_error(found, planned.least)}" if found else cost
    data = f"data: {planned.data}" if planned.data else ""
    return [line for line in (data, said, finding["warning"]) if line]
