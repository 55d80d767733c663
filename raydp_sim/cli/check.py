"""`raydp-sim check`: does a mechanism, a task or a model, anyone's, keep its promises?"""

import difflib
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError
from pydantic_core import PydanticCustomError
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from raydp_sim.check import Finding, check_mechanism, check_model, check_task
from raydp_sim.check.models import CLASSES
from raydp_sim.check.subject import Subject
from raydp_sim.check.tasks.subject import documents
from raydp_sim.cli import accounting
from raydp_sim.errors import InputError, bad_field
from raydp_sim.mechanisms import MECHANISMS
from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.model import describe
from raydp_sim.models import MODELS
from raydp_sim.models.base import Classifier
from raydp_sim.registry import Registry, search_also
from raydp_sim.scenario import parse
from raydp_sim.scenario.document import overridden
from raydp_sim.tasks import TASKS
from raydp_sim.tasks.base import Task

_EPILOG = """\b
Example:
  raydp-sim check krr
  raydp-sim check my_module:MyMechanism --set epsilon_local=1 --set dimension=4
  raydp-sim check linf --set epsilon_local=2 --set dimension=100 --set radius=1 --json
  raydp-sim check my_module:MyTask --set task.rounds=5 --set population.clients=60
  raydp-sim check cnn --set filters=8

\b
Exit codes: 0 all checks passed, 1 a check failed, 2 bad input.
"""
_STYLES = {"passed": "green", "failed": "bold red", "not applicable": "dim"}

Case = tuple[dict[str, Any], list[Finding]]
Checked = type[Mechanism] | type[Task] | type[Classifier]


@click.command("check", epilog=_EPILOG)
@click.argument("name", metavar="CLASS")
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of a mechanism or model, or a field of the scenario that a task is played "
    "in; may be repeated. Default: the `examples` of the class, each of them.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as one JSON document.")
@click.pass_context
def command(ctx: click.Context, name: str, assignments: tuple[str, ...], as_json: bool) -> None:
    """Check a CLASS, a mechanism, task or model: a kind, or one of your own as module:Class.

    Of a mechanism contract, domain, bias, error and loss are tried: by enumeration where the class
    knows the laws of its reports, and always by sampling. Samples refute a guarantee, they cannot
    prove one. A task is played in small scenarios: its plan, values, events, rows, and that order,
    placement and interruption change nothing. A model is tried on a few rows: its gradients against
    finite differences, and that the bits of a row do not depend on its company.
    """
    search_also(Path.cwd())
    cls = _find(name)
    with accounting.waiting("checking") as say:
        if issubclass(cls, Task):
            cases = list(_tasks(name, cls, assignments, say))
        elif issubclass(cls, Classifier):
            cases = list(_models(cls, assignments, say))
        else:
            cases = list(_mechanisms(name, cls, assignments, say))
    failed = any(finding.status == "failed" for _, found in cases for finding in found)
    if as_json:
        document = _document(name, cls, cases, failed)
        click.echo(json.dumps(document, indent=2, default=str))
    else:
        _show(name, cases)
    ctx.exit(1 if failed else 0)


def _find(name: str) -> Checked:
    try:
        cls = _registry(name).find(name)
    except PydanticCustomError as refusal:
        raise bad_field("CLASS", name, str(refusal.message())) from None
    if not hasattr(cls, "kind"):
        remedy = f"{cls.__name__} has no `kind`; give it a short name, kind: ClassVar[str] = ..."
        raise bad_field("CLASS", name, remedy)
    found: Checked = cls
    return found


def _registry(name: str) -> Registry[Any]:
    """Return where a class belongs; of no known one, where the nearest kind does."""
    registries: tuple[Registry[Any], ...] = (MECHANISMS, TASKS, MODELS)
    for registry in registries:
        if registry.describes(name):
            return registry
    if ":" in name:
        bases = " or ".join(
            f"{registry.base.__module__}.{registry.base.__name__}" for registry in registries
        )
        raise bad_field("CLASS", name, f"it must be a subclass of {bases}")
    near = difflib.get_close_matches(
        name, [kind for registry in registries for kind in registry.kinds], 1
    )
    return next((one for one in registries if near and near[0] in one.kinds), MECHANISMS)


def _mechanisms(
    name: str, cls: type[Mechanism], assignments: Iterable[str], say: Callable[[str], None]
) -> Iterator[Case]:
    for parameters in _parameters(name, cls, assignments):
        yield parameters, check_mechanism(_made(cls, parameters), say)


def _tasks(
    name: str, cls: type[Task], assignments: Iterable[str], say: Callable[[str], None]
) -> Iterator[Case]:
    """Check a task in each of its examples, with the assignments made in all of them."""
    for example, document in zip(cls.examples, documents(name, cls), strict=True):
        scenario = parse(document, assignments, source=f"the scenario to check {name} in")
        yield overridden(example, assignments), check_task(scenario, say)


def _models(
    cls: type[Classifier], assignments: Iterable[str], say: Callable[[str], None]
) -> Iterator[Case]:
    """Check a model in each of its examples, with the assignments made in all of them."""
    examples = getattr(cls, "examples", ())
    if not examples:
        remedy = "give it `examples`: pairs of its parameters and of the shape of a sample"
        raise bad_field("CLASS", cls.__name__, remedy)
    for example, shape in examples:
        parameters = overridden(example, assignments)
        try:
            model = cls.model_validate(parameters)
        except ValidationError as error:
            raise InputError(describe(error, set(cls.model_fields), "--set")) from None
        model.network(shape, CLASSES)
        yield parameters, check_model(model, shape, say)


def _parameters(
    mechanism: str, cls: type[Mechanism], assignments: Iterable[str]
) -> list[dict[str, Any]]:
    """Return the parameters of each case, as given or as the class's examples."""
    if given := overridden({}, assignments):
        return [given]
    examples = list(getattr(cls, "examples", ()))
    if not examples:
        raise InputError(
            f"--set is missing; {mechanism} has no `examples`, so give its parameters, such as "
            f"--set {cls.epsilon_field}=1 --set dimension=4"
        )
    return examples


def _made(cls: type[Mechanism], parameters: dict[str, Any]) -> Mechanism:
    """Build a mechanism that is complete, or refuse what is missing of its parameters."""
    try:
        made = cls.model_validate(parameters)
    except ValidationError as error:
        raise InputError(describe(error, set(cls.model_fields), "--set")) from None
    try:
        Subject(made).touch()
    except InputError as error:
        raise InputError(f"--set: {error}") from None
    except Exception:
        pass  # a fault of the class, which the checks will name
    return made


def _document(name: str, cls: Checked, cases: list[Case], failed: bool) -> dict[str, Any]:
    bases = {"task": Task, "model": Classifier, "mechanism": Mechanism}
    return {
        next(what for what, base in bases.items() if issubclass(cls, base)): name,
        "class": f"{cls.__module__}:{cls.__qualname__}",
        "passed": not failed,
        "cases": [
            {
                "parameters": parameters,
                "checks": [
                    {"check": each.check, "status": each.status, "why": each.why} for each in found
                ],
            }
            for parameters, found in cases
        ],
    }


def _show(name: str, cases: list[Case]) -> None:
    # Pipes have no width; a wide one keeps most reasons on their line.
    console = Console(width=None if sys.stdout.isatty() else 130)
    count = "" if len(cases) == 1 else f", {len(cases)} cases; numbers are those of the first"
    console.print(Text(f"{name}{count}", style="bold"))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in ("check", "result"):
        table.add_column(column, no_wrap=True)
    table.add_column("why")
    columns = list(zip(*(found for _, found in cases), strict=True))
    results = [_together(cases, list(column)) for column in columns]
    for finding in results:
        shown = "FAILED" if finding.status == "failed" else finding.status
        style = _STYLES[finding.status]
        table.add_row(finding.check, Text(shown, style=style), Text(finding.why))
    console.print(table, highlight=False)
    number = {status: sum(each.status == status for each in results) for status in _STYLES}
    console.print(
        Text(
            f"{number['passed']} passed, {number['failed']} failed, "
            f"{number['not applicable']} not applicable",
            style="bold",
        )
    )


def _together(cases: list[Case], found: list[Finding]) -> Finding:
    """Return one line for all cases: the first failure, else the first that passed."""
    for (parameters, _), finding in zip(cases, found, strict=True):
        if finding.status == "failed":
            given = ", ".join(f"{name} {value}" for name, value in parameters.items())
            where = f" ({given})" if len(cases) > 1 else ""
            return Finding(finding.check, "failed", f"{finding.why}{where}")
    passed = [finding for finding in found if finding.status == "passed"]
    if not passed:
        return found[0]
    note = f" ({len(passed)} of {len(found)} cases)" if len(passed) < len(found) else ""
    return Finding(found[0].check, "passed", f"{passed[0].why}{note}")
