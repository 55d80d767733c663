"""What went wrong in a run, as clauses without a reason or a remedy; None where nothing did."""

from raydp_sim.stress.row import Measures


def ended(run: Measures) -> str | None:
    """Say that batches were missing at the end."""
    played = run.made + run.withheld_count
    if played >= run.batches:
        return None
    return f"the run ended after {played:,} of {run.batches:,} batches"


def held(run: Measures) -> str | None:
    """Say that batches were too small to be released."""
    found = run.withheld
    if found is None:
        return None
    came = f"{found.least:,}" if found.least == found.most else f"{found.least:,} to {found.most:,}"
    return (
        f"{run.withheld_count:,} of {run.withheld_count + run.made:,} batches were withheld, from "
        f"hour {found.first / 3600:.1f} to {found.last / 3600:.1f}: {came} reports came and "
        f"{run.min_batch:,} are needed"
    )


def few(run: Measures) -> str | None:
    """Say that one release in twenty holds less than nine tenths of what was wanted."""
    if not run.made or run.batch_p5 >= 0.9 * run.wanted:
        return None
    return (
        f"batches were short: one in twenty holds at most {run.batch_p5:,.0f} of the "
        f"{run.wanted:,.0f} reports wanted, the median one {run.batch_median:,.0f}"
    )


def off(run: Measures, steady: Measures) -> str | None:
    """Say that a release is off by a quarter more than in the baseline."""
    if not run.squared_error or not steady.squared_error:
        return None
    times = run.squared_error / steady.squared_error
    if times < 1.25:
        return None
    return f"the squared error of a release is {times:.2g} times that of {steady.name}"


def lost(run: Measures) -> str | None:
    """Say that one report in ten is in no release."""
    if run.waste.total < 0.1:
        return None
    shares = [f"{share:.0%} {name}" for name, share in _losses(run).items() if share >= 0.005]
    return f"{run.waste.total:.0%} of the reports begun are in no release: {', '.join(shares)}"


def most_lost(run: Measures) -> str:
    """Return where most of the reports went that are in no release."""
    parts = _losses(run)
    return max(parts, key=lambda name: parts[name])


def long(run: Measures, steady: Measures) -> str | None:
    """Say that batches took half as long again as in the baseline."""
    if not steady.seconds_per_batch or run.seconds_per_batch < 1.5 * steady.seconds_per_batch:
        return None
    return (
        f"a batch took {_duration(run.seconds_per_batch)}, and "
        f"{_duration(steady.seconds_per_batch)} in {steady.name}"
    )


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _losses(run: Measures) -> dict[str, float]:
    return {
        "lost on the way": run.waste.dropped,
        "too late or too many": run.waste.late,
        "in withheld batches": run.waste.withheld,
        "still under way at the end": run.waste.under_way,
    }
