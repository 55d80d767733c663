"""A plain warning where a run will learn nothing or less than it could, and what to change."""

import math
from collections.abc import Iterator

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.base import LIMITS
from raydp_sim.mechanisms.shuffled import with_loss
from raydp_sim.run.prediction import Prediction, predict
from raydp_sim.scenario import Scenario, bound_mechanism, parse
from raydp_sim.scenario.accounting import planned
from raydp_sim.scenario.batches import rarely_below
from raydp_sim.tasks.charging import amplifies

# The advice is to end with this part of the error that the trivial answer has.
_GOAL = 0.25
_DOUBLINGS = 12

Candidate = tuple[str, float, Scenario]
"""A field, its value, and the scenario to try it on."""


def warning(scenario: Scenario, found: Prediction | None) -> str | None:
    """Say that a run will be useless, or its target wasteful, and what would help; else None.

    Every setting named was tried: the error in brackets is what is expected with it.

    Example:
        >>> from raydp_sim.scenario import parse
        >>> tiny = {"name": "a", "mechanism": {"kind": "2rr", "epsilon_local": 0.01},
        ...         "population": {"clients": 1000, "data": {"kind": "bernoulli",
        ...                        "probability": 0.25}}}
        >>> print(warning(parse(tiny), predict(parse(tiny))).partition(": ")[2])
        the run is expected to end with a squared error of 10, and one half, which asks nobody, has 0.0586 on these data; set population.clients to 690,000 (then 0.0145) or mechanism.epsilon_local to 0.32 (then 0.00968)
    """  # noqa: E501  # a printed line
    if found is None or not found.useless:
        return _without_delta(scenario)
    tried = [
        f"{field} to {value:,.12g} (then {error:.3g})"
        for field, value, base in _candidates(scenario, found)
        if (error := _error_with(base, field, value)) is not None
        and error < found.trivial.squared_error
    ]
    remedy = f"set {' or '.join(tried)}" if tried else "ask more clients, or allow more epsilon"
    most = "" if found.expected.exact else "at most "
    return (
        f"warning: the run is expected to end with a squared error of {most}"
        f"{found.expected.run:.3g}, and {found.trivial.answer}, which asks nobody, has "
        f"{found.trivial.squared_error:.3g} on these data; {remedy}"
    )


def _without_delta(scenario: Scenario) -> str | None:
    """Say that a target without delta makes reports as noisy as if nobody shuffled them."""
    target, delta = scenario.mechanism.target, scenario.privacy.delta
    if target is None or target.delta > 0.0 or delta == 0.0:
        return None
    if not amplifies(bound_mechanism(scenario), scenario.trust_model):
        return None
    return (
        "warning: mechanism.target has no delta, so that the shuffler counts for nothing in it and "
        f"reports are noisier than need be; set mechanism.target.delta to {delta:g} (privacy.delta)"
    )


def _candidates(scenario: Scenario, found: Prediction) -> Iterator[Candidate]:
    """Yield settings that may help, the best first: each reaches the goal by itself."""
    least, target = rarely_below(found.batch), scenario.mechanism.target
    if target is not None and scenario.trust_model.shuffled and scenario.shuffle.min_batch < least:
        yield "shuffle.min_batch", least, scenario
        return  # with noise for so small a batch nothing else is worth saying
    goal = _GOAL * found.trivial.squared_error
    factor = found.expected.run / goal
    if math.isfinite(factor):
        yield from _larger(scenario, found, factor)
    yield from _looser(scenario, goal)


def _larger(scenario: Scenario, found: Prediction, factor: float) -> Iterator[Candidate]:
    """Yield how many more clients to ask: noise falls as 1/n."""
    population, policy = scenario.population, scenario.participation
    wanted, rows = _rounded(found.batch * factor), population.data.rows()
    # With the noise as it is; a target would allow less for a larger batch.
    base = _with_loss(scenario)
    if policy.sized_by != "kind" and wanted <= population.clients * population.rate():
        yield f"participation.{policy.sized_by}", int(wanted), base
    elif policy.sized_by == "kind":
        everyone = _rounded(population.clients * factor)
        if everyone < 2**32 and (rows is None or everyone <= rows):
            yield "population.clients", int(everyone), base


def _looser(scenario: Scenario, goal: float) -> Iterator[Candidate]:
    """Yield the guarantee that would do: the local one, or what the run would cost with it."""
    mechanism, base = bound_mechanism(scenario), _with_loss(scenario)
    if mechanism.guarantee == "none":
        return
    target = base.mechanism.target
    name = f"mechanism.{mechanism.epsilon_field}" if target is None else "mechanism.target.epsilon"
    value = mechanism.need_epsilon() if target is None else target.epsilon
    for _ in range(_DOUBLINGS):
        value = min(2.0 * value, LIMITS[1])
        if (error := _error_with(base, name, value)) is not None and error <= goal:
            break
    else:
        return
    if base is scenario:
        yield name, _rounded(value), base
        return
    cost = planned(scenario, with_loss(mechanism, value))
    yield "mechanism.target.epsilon", _rounded(cost), scenario


def _with_loss(scenario: Scenario) -> Scenario:
    """Return the scenario with the local guarantee that its target became behind a shuffler.

    So others are tried without calibrating again. Where nothing is amplified that is quick anyway.
    """
    mechanism = bound_mechanism(scenario)
    if scenario.mechanism.target is None or not amplifies(mechanism, scenario.trust_model):
        return scenario
    fixed = with_loss(scenario.mechanism, mechanism.need_epsilon())
    return scenario.model_copy(update={"mechanism": fixed})


def _error_with(scenario: Scenario, field: str, value: float) -> float | None:
    """Return the error expected with another setting; None where that cannot be played."""
    try:
        found = predict(parse(scenario.document(), [f"{field}={value!r}"]))
    except InputError:
        return None
    return None if found is None else found.expected.run


def _rounded(value: float) -> float:
    """Round up to two digits, for a person to type.

    Example:
        >>> _rounded(4567.0), _rounded(0.1234)
        (4600.0, 0.13)
    """
    if not 0.0 < value < math.inf:
        return value
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value / unit - 1e-9) * unit:.2g}")
