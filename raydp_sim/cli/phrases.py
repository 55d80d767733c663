"""How a plan and its numbers are said in words, by every command."""

import math

from raydp_sim.run.advice import warning
from raydp_sim.run.prediction import Prediction
from raydp_sim.run.preflight import Plan
from raydp_sim.scenario import Scenario


def epsilon(value: float) -> str:
    """Say an epsilon; where there is no guarantee, in so many words.

    Example:
        >>> epsilon(0.5), epsilon(float("inf"))
        ('0.5', 'infinite')
    """
    return "infinite" if math.isinf(value) else f"{value:.4g}"


def plan_lines(scenario: Scenario, plan: Plan) -> list[str]:
    """Say a plan, what was found out about the data and, if the run will be useless, so."""
    data = [f"data: {plan.data}"] if plan.data else []
    useless = warning(scenario, plan.prediction)
    return [*data, plan_line(plan), *([useless] if useless else [])]


def plan_line(plan: Plan) -> str:
    """Say a plan in one line.

    Example:
        >>> plan_line(Plan(0, 3 << 20, 0.2, 100, 2.0, 9)).partition(";")[0]
        'plan: one process, 3 MiB, under 1 s'
    """
    place = f"{plan.actors} actors" if plan.actors else "one process"
    loading = f" ({plan.loading:.0f} s of it calibrating)" if plan.loading >= 1.0 else ""
    error = f"{expected_error(plan.prediction, plan.least)}; " if plan.prediction else ""
    return (
        f"plan: {place}, {_size(plan.memory)}, {duration(plan.seconds)}{loading}; "
        f"epsilon {epsilon(plan.epsilon)} for a client in every release; {error}"
        f"{bits_of(plan.bits)} per report"
    )


def expected_error(found: Prediction, least: int) -> str:
    """Say what error to expect, of batches of which size."""
    expected, most = found.expected, "" if found.expected.exact else "at most "
    note = f" ({expected.note})" if expected.note else ""
    return (
        f"expected squared error {most}{expected.release:.3g} of a release, {most}"
        f"{expected.run:.3g} of the run{note}; batches of about {found.batch:,.0f}, never below "
        f"{least:,}"
    )


def _size(size: float) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{max(1, round(size / 2**20))} MiB"


def bits_of(bits: int) -> str:
    """Say a number of bits."""
    return "1 bit" if bits == 1 else f"{bits:,} bits"


def duration(seconds: float) -> str:
    """Say how long something takes, roughly."""
    if seconds < 1:
        return "under 1 s"
    if seconds < 120:
        return f"about {seconds:.0f} s"
    minutes = seconds / 60
    return f"about {minutes:.0f} min" if minutes < 120 else f"about {minutes / 60:.1f} h"


def spaced(name: str) -> str:
    """Return the name of a column as words.

    Example:
        >>> spaced("running_squared_error")
        'running squared error'
    """
    return name.replace("_", " ")
