"""What went wrong in a run, in words, with the setting to change: rules over its measures.

A rule looks at the measures of a run and of the baseline, and says something or nothing. None of
them knows a scenario by name. Where many clients have used up their budgets, `spent` says what came
of it, and the rules that would see only that are silent: their remedies would not help.
"""

from collections.abc import Callable
from dataclasses import dataclass

from raydp_sim.stress import facts
from raydp_sim.stress.row import Measures

Rule = Callable[[Measures, Measures], str | None]
_AFFORDABLE = 2.0  # times the planned epsilon; a smaller min_batch that costs more is no advice
_MANY = 0.25  # of the clients: so many spent budgets are why batches do not fill
# Losses of reports that follow if too few clients are left to fill the batches.
_UNFILLED = ("in withheld batches", "still under way at the end")


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
    what = facts.ended(run)
    if what is None or _drained(run):
        return None
    remedies = []
    if run.settings.size is not None:
        remedies.append(f"lower {run.settings.size}")
    if run.policy == "asynchronous":
        remedies.append("raise participation.patience")
    remedies.append(f"reach more clients ({run.settings.reach})")
    why = "nobody came any more"
    if run.budget is not None and run.exhausted > 0.0:
        why += f", and {run.exhausted:.0%} of the clients could not afford to"
        remedies.append("raise privacy.budget.epsilon")
    return f"{_capital(what)}, for {why}: {_listed(remedies)}."


def withheld(run: Measures, steady: Measures) -> str | None:
    """Fire if a batch was too small to be released."""
    what, held = facts.held(run), run.withheld
    if what is None or held is None or _drained(run):
        return None
    remedies = []
    if run.deadline is not None:
        remedies = ["raise participation.deadline", "set participation.on_short to wait"]
    # Smaller batches cost more, so budgets that the plan reaches would be used up the sooner.
    lasting = run.budget is None or (held.epsilon is not None and held.epsilon < run.budget)
    if lasting and held.epsilon is not None and held.epsilon <= _AFFORDABLE * run.planned:
        remedies.append(
            f"lower shuffle.min_batch to {held.half:,}, which releases half of them and raises the "
            f"planned epsilon from {run.planned:.3g} to about {held.epsilon:.3g}"
        )
    remedies = remedies or [f"reach more clients ({run.settings.reach})"]
    return f"{what}. {_capital(_listed(remedies))}."


def short(run: Measures, steady: Measures) -> str | None:
    """Fire if one release in twenty holds less than nine tenths of what was wanted."""
    what, settings = facts.few(run), run.settings
    if what is None or _drained(run):
        return None
    remedies = []
    if run.deadline is not None:
        remedies.append("raise participation.deadline")
    if run.policy == "over-selected":
        remedies.append("raise participation.factor")
    if settings.size is not None:
        remedies.append(f"lower {settings.size}")
    else:
        # What is wanted is whoever is there, so only more of them make larger batches.
        remedies += [f"raise {settings.larger}", f"reach more clients ({settings.reach})"]
    why = "the deadline closed them" if run.deadline is not None else "no more clients were there"
    return f"{_capital(what)}; {why}. {_capital(_listed(remedies))}."


def noisy(run: Measures, steady: Measures) -> str | None:
    """Fire if a release is off by a quarter more than in the baseline."""
    what, fewer = facts.off(run, steady), run.batch_median < 0.9 * steady.batch_median
    if what is None or (fewer and _drained(run)):
        return None
    more = (run.squared_error or 0.0) - (steady.squared_error or 0.0)
    if biased(run, steady) is not None and (run.bias or 0.0) ** 2 > 0.5 * more:
        return None  # larger batches would not help
    why = ""
    if fewer:
        why = (
            f", for the median batch has {run.batch_median:,.0f} reports and not "
            f"{steady.batch_median:,.0f}"
        )
    larger = run.settings.larger
    remedies = [f"raise {larger}"]
    if larger != "population.clients":
        remedies = [f"raise {larger} where there are enough clients"]
    if not _drained(run):
        remedies.append("average over more releases (task.rounds)")
    return f"{_capital(what)}{why}: {_listed(remedies)}."


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
        f"them ({run.settings.reach})."
    )


def uneven(run: Measures, steady: Measures) -> str | None:
    """Fire if participation is uneven, and more so than in the baseline."""
    if run.gini < max(0.3, steady.gini + 0.1):
        return None
    remedy = "run longer (task.rounds)"
    if run.waste.late >= 0.1 and run.deadline is not None:
        remedy = "raise participation.deadline, so that slow clients are in time"
    elif run.waste.late >= 0.1 and run.policy == "over-selected":
        remedy = "lower participation.factor, so that fast clients do not crowd out slow ones"
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
    remedies = [f"lower {run.settings.loss} or task.rounds", f"raise {run.settings.larger}"]
    if run.budget is None:
        remedies.insert(0, "set privacy.budget")
    return (
        f"The client charged most has spent epsilon {run.epsilon:.3g}, and {steady.epsilon:.3g} in "
        f"{steady.name}: it was in {run.most_turns:,} releases of about {run.batch_median:,.0f} "
        f"reports, there in {steady.most_turns:,} of {steady.batch_median:,.0f}. "
        f"{_capital(_listed(remedies))}."
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
    """Fire if one client in twenty has used its budget up; if many have, say what came of it."""
    if run.budget is None or run.exhausted < 0.05:
        return None
    remedies = ["raise privacy.budget.epsilon", f"lower {run.settings.loss}"]
    if run.settings.size is not None:
        remedies.append("share the batches between more clients (population.clients)")
    remedies.append("plan fewer batches (task.rounds)")
    home = (
        f"{run.exhausted:.0%} of the clients have used up their budget of {run.budget:g} and stay "
    )
    effects = _effects(run, steady) if _drained(run) else []
    what = f"home, so {'; '.join(effects)}" if effects else "home"
    return f"{home}{what}. {_capital(_listed(remedies))}."


def stale(run: Measures, steady: Measures) -> str | None:
    """Fire if reports are a release behind on average, or five at worst."""
    if run.policy != "asynchronous" or (run.staleness < 1.0 and run.stalest < 5):
        return None
    return (
        f"Reports were {run.staleness:.1f} releases behind on average and {run.stalest} at worst: "
        "batches closed faster than clients answer. A mean of values that stay does not mind, "
        "learning does: raise participation.batch, or weigh old reports down "
        "(participation.staleness_exponent)."
    )


def waste(run: Measures, steady: Measures) -> str | None:
    """Fire if one report in ten is in no release."""
    what, most = facts.lost(run), facts.most_lost(run)
    if what is None or (most in _UNFILLED and _drained(run)):
        return None
    remedy = f"Reach more clients ({run.settings.reach})."
    if most == "lost on the way":
        kept = 1.0 - run.waste.dropped
        remedy = f"Plan for {1 / kept:.2g} times the clients, or find out why they leave."
        if run.policy == "over-selected":
            remedy = f"Set participation.factor to about {1 / kept:.2g}."
    elif most == "still under way at the end":
        remedy = "A longer run would take them in: raise task.rounds."
    elif most == "too late or too many" and run.policy == "over-selected" and run.full:
        remedy = "Lower participation.factor."
    elif run.deadline is not None:
        waits = "" if most == "too late or too many" else ", or set participation.on_short to wait"
        remedy = f"Raise participation.deadline{waits}."
    return f"{what}. {remedy}"


def slow(run: Measures, steady: Measures) -> str | None:
    """Fire if batches take half as long again as in the baseline."""
    what = facts.long(run, steady)
    if what is None or _drained(run):
        return None
    faster = "participation.every" if run.policy == "asynchronous" else "participation.interval"
    if run.settings.size is not None:
        remedy = f"lower {run.settings.size} or {faster}"
    elif run.deadline is not None:
        remedy = f"lower {faster} or participation.deadline"
    else:
        remedy = f"lower {faster}, or set participation.deadline"
    return f"{_capital(what)}: {remedy}."


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


def _drained(run: Measures) -> bool:
    """Say whether so many budgets are used up that the rest cannot fill the batches."""
    return run.budget is not None and run.exhausted > _MANY


def _effects(run: Measures, steady: Measures) -> list[str]:
    """Return what comes of it if clients stay home."""
    fewer = run.batch_median < 0.9 * steady.batch_median
    found = (
        facts.ended(run),
        facts.held(run),
        facts.few(run),
        facts.off(run, steady) if fewer else None,
        facts.lost(run) if facts.most_lost(run) in _UNFILLED else None,
        facts.long(run, steady),
    )
    return [what for what in found if what is not None]


def _listed(remedies: list[str]) -> str:
    """Join remedies.

    Example:
        >>> _listed(["raise a", "lower b", "set c"])
        'raise a, lower b, or set c'
    """
    *others, last = remedies
    return ", ".join([*others, f"or {last}"]) if others else last


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
