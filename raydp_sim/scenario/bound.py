"""What follows from a whole scenario: its calibrated mechanism, and the setting of its task."""

from pydantic import ValidationError

from raydp_sim.errors import InputError, bad_field
from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.model import describe
from raydp_sim.privacy.curves.mixed import honest_clients
from raydp_sim.scenario.accounting import setting_with
from raydp_sim.scenario.calibration import calibrated
from raydp_sim.scenario.file import Scenario
from raydp_sim.tasks.base import Setting


def bound_mechanism(scenario: Scenario) -> Mechanism:
    """Return the mechanism with what the rest of the file says about it filled in, calibrated.

    Raises:
        InputError: when the mechanism does not fit the task's values.
    """
    if scenario._bound is None:
        scenario._bound = _bind(scenario)
    return scenario._bound


def _bind(scenario: Scenario) -> Mechanism:
    honest = honest_clients(scenario.shuffle.min_batch, scenario.privacy.honest_fraction)
    try:
        reports = max(1, int(scenario.participation.expected(scenario.population.clients, 1.0)))
        bound = filled(scenario).for_batches(honest).for_run(scenario.task.rounds, reports)
        return calibrated(scenario, bound)
    except ValidationError as error:
        known = set(type(scenario.mechanism).model_fields)
        raise InputError(describe(error, known, prefix=("mechanism",))) from None


def filled(scenario: Scenario) -> Mechanism:
    """Return the mechanism with what the rest of the file says about it, not yet calibrated.

    Raises:
        InputError: when the mechanism does not fit the task's values.
    """
    data = scenario.population.data
    width = scenario.task.width(data.shape(), data.labels())
    known = {"dimension": width, "clients": scenario.population.clients}
    for name, value in known.items():
        given = getattr(scenario.mechanism, name)
        if given is not None and given != value:
            remedy = f"the population says {value}; leave mechanism.{name} out"
            raise bad_field(f"mechanism.{name}", given, remedy)
    cls = type(scenario.mechanism)
    try:
        return cls.model_validate({**scenario.mechanism.model_dump(), **known})
    except ValidationError as error:
        raise InputError(describe(error, set(cls.model_fields), prefix=("mechanism",))) from None


def settled(scenario: Scenario) -> Scenario:
    """Return the scenario with its mechanism filled in and calibrated, once and for all."""
    found = scenario.model_copy(update={"mechanism": bound_mechanism(scenario)})
    found._bound = scenario._bound
    return found


def setting_of(scenario: Scenario) -> Setting:
    """Return what the scenario's task may know before the run."""
    return setting_with(scenario, bound_mechanism(scenario))
