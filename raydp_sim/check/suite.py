"""All checks of mechanisms, of tasks and of models, in the order in which they are reported."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from raydp_sim.check import accuracy, admission, contract, laws, sampled
from raydp_sim.check.finding import Check, Finding
from raydp_sim.check.keys import KEY_CHECKS
from raydp_sim.check.models import MODEL_CHECKS, ModelSubject
from raydp_sim.check.subject import Subject
from raydp_sim.check.tasks import clients, readers, runs
from raydp_sim.check.tasks import contract as protocol
from raydp_sim.check.tasks.subject import TaskSubject
from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.mechanisms.leveled import Leveled
from raydp_sim.models.base import Classifier
from raydp_sim.scenario import Scenario

MECHANISM_CHECKS: tuple[Check[Subject], ...] = (
    contract.shapes,
    contract.event,
    contract.seeds,
    contract.placement,
    contract.nobody,
    contract.wire,
    contract.folding,
    contract.arguments,
    contract.target,
    contract.scenario_file,
    admission.inside,
    admission.beyond,
    admission.not_numbers,
    accuracy.unbiased,
    accuracy.stated_error,
    accuracy.worst_error,
    accuracy.additive,
    accuracy.enumerated,
    laws.probabilities,
    laws.followed,
    laws.exact_ratio,
    laws.message_losses,
    sampled.sampled_ratio,
)

TASK_CHECKS: tuple[Check[TaskSubject], ...] = (
    protocol.types,
    protocol.scenario_file,
    protocol.released,
    clients.values,
    clients.blocks,
    clients.truths,
    readers.order,
    readers.several,
    readers.alone,
    protocol.plan,
    protocol.events,
    protocol.marks,
    runs.within,
    runs.seed,
    runs.placement,
    runs.resume,
)


def checks_of(mechanism: Mechanism) -> tuple[Check[Subject], ...]:
    """Return the checks of a mechanism: those of keys as well, if it has some."""
    keys = KEY_CHECKS if isinstance(mechanism, Leveled) else ()
    return (*MECHANISM_CHECKS, *keys)


def check_mechanism(
    mechanism: Mechanism, progress: Callable[[str], None] | None = None
) -> list[Finding]:
    """Run every check on one mechanism.

    Args:
        mechanism: with its parameters.
        progress: called with the name of each check before it runs.

    Example:
        >>> from raydp_sim.mechanisms import make
        >>> found = check_mechanism(make("2rr", epsilon_local=1.0))
        >>> [finding.status for finding in found].count("failed")
        0
    """
    subject, findings = Subject(mechanism), []
    for each in checks_of(mechanism):
        if progress is not None:
            progress(each.name)
        findings.append(each(subject))
    return findings


def check_task(scenario: Scenario, progress: Callable[[str], None] | None = None) -> list[Finding]:
    """Run every check on the task of a scenario, which should be small: it is played four times.

    Args:
        scenario: such as those of `tasks.subject.documents`.
        progress: called with the name of each check before it runs.

    Example:
        >>> from raydp_sim.check.tasks.subject import documents
        >>> from raydp_sim.scenario import parse
        >>> from raydp_sim.tasks.mean import Mean
        >>> found = check_task(parse(documents("mean", Mean)[0]))
        >>> [finding.check for finding in found if finding.status != "passed"]
        []
    """
    findings = []
    with TemporaryDirectory() as folder:
        subject = TaskSubject(scenario, Path(folder))
        for each in TASK_CHECKS:
            if progress is not None:
                progress(each.name)
            findings.append(each(subject))
    return findings


def check_model(
    model: Classifier, shape: tuple[int, ...], progress: Callable[[str], None] | None = None
) -> list[Finding]:
    """Run every check on one model.

    Args:
        model: with its parameters.
        shape: of the features that it is tried on; there are three classes.
        progress: called with the name of each check before it runs.

    Example:
        >>> from raydp_sim.models.linear import Linear
        >>> {finding.status for finding in check_model(Linear(), (3, 4))}
        {'passed'}
    """
    subject, findings = ModelSubject(model, shape), []
    for each in MODEL_CHECKS:
        if progress is not None:
            progress(each.name)
        findings.append(each(subject))
    return findings
