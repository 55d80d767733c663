"""`raydp-sim traces`: tables of when clients are there, from public recordings."""

from pathlib import Path

import click

from raydp_sim.durable import write_durable
from raydp_sim.errors import InputError, bad_field
from raydp_sim.population.intervals import ENDINGS, check_clients, content, load
from raydp_sim.population.traces import Recording, read

_EPILOG = """\b
Example:
  raydp-sim traces convert client_behave_trace phones.parquet --clients 1000
  raydp-sim traces check phones.parquet --clients 1000
"""
_CONVERT = """\b
Example:
  raydp-sim traces convert client_behave_trace phones.parquet
  raydp-sim traces convert state_traces.json phones.csv --clients 1000
"""
_CHECK = """\b
Example:
  raydp-sim traces check phones.parquet --clients 1000
"""
_DAY = 86400.0


@click.group("traces", epilog=_EPILOG)
def command() -> None:
    """Make and check tables for `population.availability: {kind: trace}`.

    A table is a .csv (with a header) or .parquet file with the columns client, on and off: client
    number `client`, from 0, is there from second `on` until just before `off`. Rows are sorted by
    client and on and do not overlap.
    """


@command.command("convert", epilog=_CONVERT)
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option(
    "--clients", type=click.IntRange(1), metavar="N", help="Keep the first N clients only."
)
def converted(source: str, target: str, clients: int | None) -> None:
    """Write the recording IN as the table OUT (.csv or .parquet), which must not exist yet.

    IN is FedScale's client behaviour trace (a pickle of plain containers, or JSON), FLASH's state
    traces or cached timers (JSON), or a table. Clients are numbered anew in the order of their
    names.
    """
    out = Path(target)
    if out.suffix not in ENDINGS:
        raise bad_field("OUT", target, f"it must end in {' or '.join(ENDINGS)}")
    if out.exists():
        raise bad_field("OUT", target, "it already exists: choose another file")
    if not out.parent.is_dir():
        raise bad_field("OUT", target, f"there is no folder {out.parent}; make it first")
    made = read(Path(source), clients)
    try:
        write_durable(out, content(made.stays, out.suffix))
    except OSError as error:
        raise bad_field("OUT", target, f"it cannot be written ({error.strerror})") from None
    _show(made)
    field = f"{{kind: trace, path: {out.name}, repeat: true, length: {made.length:.17g}}}"
    click.echo(f"use it as      population.availability: {field}")


@command.command("check", epilog=_CHECK)
@click.argument("file")
@click.option(
    "--clients", type=click.IntRange(1), metavar="N", help="Also check that all are below N."
)
def checked(file: str, clients: int | None) -> None:
    """Check the table FILE and say what it holds."""
    if Path(file).suffix not in ENDINGS:
        raise InputError(f"{file}: it must end in {' or '.join(ENDINGS)}; convert it first")
    stays = load(file)
    if clients is not None:
        check_clients(file, stays, clients)
    _show(Recording(stays, max(stays.clients(), clients or 0), stays.end))


def _show(made: Recording) -> None:
    share = float((made.stays.off - made.stays.on).sum()) / (made.length * made.clients)
    click.echo(f"clients        {made.clients:,}")
    click.echo(f"intervals      {len(made.stays):,}")
    click.echo(f"length         {made.length:,.10g} s ({made.length / _DAY:.3g} days)")
    click.echo(f"there          {share:.1%} of the clients' time")
    for note in made.notes:
        click.echo(f"note           {note}")
