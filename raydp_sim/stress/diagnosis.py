"""What went wrong in a run, in words, with the setting to change: rules over its measures.

A rule looks at the measures of a run and of the baseline, and says something or nothing. None of
them knows a scenario by name.
"""

from collections.abc import Callable
from dataclasses import dataclass

from raydp_sim.stress.measures import Measures

Rule = Callable[[Measures, Measures], str | None]
_AFFORDABLE = 2.0  # times the planned epsilon; a smaller min_batch that costs more is no advice
_SIZED = {"asynchronous": "participation.batch"}  # others: participation.sampled


@dataclass(frozen=True)
class Finding:
    """One thing that went wrong.

    Attributes:
        rule: which rule found it.
        text: what happened, and the setting to change.
    """

    rule: str
    text: str


def diagnose(run: Measures, steady: Measures) -> list[Finding]:
    """Return what went wrong in a run; nothing, if the list is empty.

    Args:
        run: its measures.
        steady: those of a calm run to compare with; may be the same.
    """
    found = ((name, rule(run, steady)) for name, rule in RULES.items())
    return [Finding(name, text) for name, text in found if text is not None]


def ended_early(run: Measures, steady: Measures) -> str | None:
    """Fire if batches were missing at the end because nobody came."""
    played = run.made + run.withheld_count
    if played >= run.batches:
        return None
    return (
        f"The run ended after {played:,} of {run.batches:,} batches, for nobody came any more: "
        f"lower {_size(run)}, raise participation.patience, or reach more clients "
        "(population.availability)."
    )


def withheld(run: Measures, steady: Measures) -> str | None:
    """Fire if a batch was too small to be let out."""
    held = run.withheld
    if held is None:
        return None
    came = f"{held.least:,}" if held.least == held.most else f"{held.least:,} to {held.most:,}"
    remedies = []
    if run.deadline is not None:
        remedies = ["raise participation.deadline", "set participation.on_short to wait"]
    if held.epsilon is not None and held.epsilon <= _AFFORDABLE * run.planned:
        remedies.append(
            f"lower shuffle.min_batch to {held.half:,}, which lets half of them out and raises the "
            f"planned epsilon from {run.planned:.3g} to about {held.epsilon:.3g}"
        )
    remedies = remedies or ["reach more clients (population.availability)"]
    return (
        f"{run.withheld_count:,} of {run.withheld_count + run.made:,} batches were withheld, from "
        f"hour {held.first / 3600:.1f} to {held.last / 3600:.1f}: {came} reports came and "
        f"{run.min_batch:,} are needed. {_either(remedies)}."
    )


def short(run: Measures, steady: Measures) -> str | None:
    """Fire if one release in twenty holds less than nine tenths of what was wanted."""
    if not run.made or run.batch_p5 >= 0.9 * run.wanted:
        return None
    remedies = [f"lower {_size(run)}"]
    if run.deadline is not None:
        remedies.insert(0, "raise participation.deadline")
    if run.policy == "over-selected":
        remedies.insert(1, "raise participation.factor")
    why = "the deadline closed them" if run.deadline is not None else "no more clients were there"
    return (
        f"Batches were short: one in twenty holds at most {run.batch_p5:,.0f} of the "
        f"{run.wanted:,.0f} reports wanted, the median one {run.batch_median:,.0f}; {why}. "
        f"{_either(remedies)}."
    )


def noisy(run: Measures, steady: Measures) -> str | None:
    """Fire if a release is off by a quarter more than in the baseline."""
    if not run.squared_error or not steady.squared_error:
        return None
    times = run.squared_error / steady.squared_error
    if times < 1.25:
        return None
    why = ""
    if run.batch_median < 0.9 * steady.batch_median:
        why = (
            f", for the median batch has {run.batch_median:,.0f} reports and not "
            f"{steady.batch_median:,.0f}"
        )
    return (
        f"The squared error of a release is {times:.2g} times that of {steady.name}{why}: raise "
        f"{_size(run)} where there are enough clients, or average over more releases (task.rounds)."
    )


def biased(run: Measures, steady: Measures) -> str | None:
    """Fire if who took part differs from the population by three times what chance explains.

    Of a four-dimensional normal variable, chance exceeds three times its root mean square with
    probability 3e-7; of a one-dimensional one with 0.3 %.
    """
    if not run.bias or not run.chance_bias or run.bias < 3.0 * run.chance_bias:
        return None
    part = ""
    if run.expected_error:
        part = f" and makes up {run.bias**2 / run.expected_error:.0%} of the final error"
    return (
        f"Those who took part are not like the population: their mean is off by {run.bias:.2g}, "
        f"which is {run.bias / run.chance_bias:.2g} times what chance explains{part}. More "
        f"releases do not average that out; {run.never:.0%} of the clients never took part: reach "
        "them (population.availability)."
    )


def uneven(run: Measures, steady: Measures) -> str | None:
    """Fire if participation is uneven, and more so than in the baseline."""
    if run.gini < max(0.3, steady.gini + 0.1):
        return None
    remedy = "run longer (task.rounds)"
    if run.waste.late >= 0.1:
        remedy = "raise participation.deadline, so that slow clients are in time"
    elif run.policy == "asynchronous":
        remedy = "shorten participation.every, so that short stays are met, or run longer"
    return (
        f"Some clients took part much more often than others (Gini {run.gini:.2f}, {run.never:.0%} "
        f"never did): the result speaks for {run.effective:,.0f} of {run.clients:,} clients and "
        f"is off by {run.bias or 0.0:.2g} whatever the noise. {_capital(remedy)}."
    )


def costly(run: Measures, steady: Measures) -> str | None:
    """Fire if the client charged most has spent half as much again as in the baseline."""
    if run.epsilon <= 1.5 * steady.epsilon or steady.epsilon == 0.0:
        return None
    return (
        f"The client charged most has spent epsilon {run.epsilon:.3g}, and {steady.epsilon:.3g} in "
        f"{steady.name}: it was in {run.most_turns:,} releases of about {run.batch_median:,.0f} "
        f"reports, there in {steady.most_turns:,} of {steady.batch_median:,.0f}. Set "
        f"privacy.budget, lower mechanism.epsilon_local or task.rounds, or raise {_size(run)}."
    )


def beyond_plan(run: Measures, steady: Measures) -> str | None:
    """Fire if more was spent than planned, which must never happen."""
    if run.epsilon <= run.planned * (1 + 1e-9):
        return None
    return (
        f"More was spent than planned: epsilon {run.epsilon:.4g}, planned {run.planned:.4g}. This "
        "must not happen; please report it with the run directory."
    )


def spent(run: Measures, steady: Measures) -> str | None:
    """Fire if one client in twenty has used its budget up."""
    if run.budget is None or run.exhausted < 0.05:
        return None
    return (
        f"{run.exhausted:.0%} of the clients have used up their budget of {run.budget:g} and stay "
        "home. Raise privacy.budget.epsilon, lower mechanism.epsilon_local or task.rounds, or "
        "raise shuffle.min_batch, which makes the costliest release cheaper."
    )


def stale(run: Measures, steady: Measures) -> str | None:
    """Fire if reports are a release behind on average, or five at worst."""
    if run.staleness < 1.0 and run.stalest < 5:
        return None
    return (
        f"Reports were {run.staleness:.1f} releases behind on average and {run.stalest} at worst: "
        "batches closed faster than clients answer. A mean of values that stay does not mind, "
        "learning does: raise participation.batch, or weigh old reports down "
        "(participation.staleness_exponent)."
    )


def waste(run: Measures, steady: Measures) -> str | None:
    """Fire if one report in ten is in no release."""
    lost = run.waste
    if lost.total < 0.1:
        return None
    parts = {
        "lost on the way": lost.dropped,
        "too late or too many": lost.late,
        "in withheld batches": lost.withheld,
        "still under way at the end": lost.under_way,
    }
    most = max(parts, key=lambda name: parts[name])
    told = ", ".join(f"{share:.0%} {name}" for name, share in parts.items() if share >= 0.005)
    remedy = "Raise participation.deadline, or set participation.on_short to wait."
    if most == "lost on the way":
        kept = 1.0 - lost.dropped
        remedy = f"Plan for {1 / kept:.2g} times the clients, or find out why they leave."
        if run.policy == "over-selected":
            remedy = f"Set participation.factor to about {1 / kept:.2g}."
    elif most == "too late or too many":
        remedy = "Lower participation.factor." if run.full else "Raise participation.deadline."
    elif most == "still under way at the end":
        remedy = "A longer run would take them in: raise task.rounds."
    return f"{lost.total:.0%} of the reports begun are in no release: {told}. {remedy}"


def slow(run: Measures, steady: Measures) -> str | None:
    """Fire if batches take half as long again as in the baseline."""
    if not steady.seconds_per_batch or run.seconds_per_batch < 1.5 * steady.seconds_per_batch:
        return None
    faster = "participation.every" if run.policy == "asynchronous" else "participation.interval"
    return (
        f"A batch took {_duration(run.seconds_per_batch)}, and "
        f"{_duration(steady.seconds_per_batch)} in {steady.name}: lower {_size(run)} or {faster}."
    )


RULES: dict[str, Rule] = {
    "ended_early": ended_early,
    "withheld": withheld,
    "spent": spent,
    "short": short,
    "noisy": noisy,
    "biased": biased,
    "uneven": uneven,
    "costly": costly,
    "beyond_plan": beyond_plan,
    "stale": stale,
    "waste": waste,
    "slow": slow,
}


def _size(run: Measures) -> str:
    return _SIZED.get(run.policy, "participation.sampled")


def _either(remedies: list[str]) -> str:
    """Join remedies to a sentence without its full stop.

    Example:
        >>> _either(["raise a", "lower b", "set c"])
        'Raise a, lower b, or set c'
    """
    *others, last = remedies
    if not others:
        return _capital(last)
    return _capital(", ".join(others) + f", or {last}")


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
