"""`raydp-sim serve`: runs in a browser, finished or being played."""

import contextlib
from pathlib import Path

import click

from raydp_sim.errors import InputError
from raydp_sim.metrics.live.access import issued
from raydp_sim.metrics.page import serving
from raydp_sim.metrics.page.runs import Runs
from raydp_sim.registry import search_also
from raydp_sim.run.presence import availability
from raydp_sim.run.serving import unencrypted
from raydp_sim.run.spending import epsilons
from raydp_sim.scenario.sections import host_and_port

_EPILOG = """\b
Example:
  raydp-sim serve
  raydp-sim serve runs/week-20250101-120000
  RAYDP_SIM_TOKEN=... raydp-sim serve runs --at 127.0.0.1:8800
"""


@click.command("serve", epilog=_EPILOG)
@click.argument("folder", metavar="[DIR]", default="runs")
@click.option(
    "--at",
    metavar="HOST:PORT",
    default="127.0.0.1:0",
    help="Where to listen; default: this machine only, at a free port.",
)
@click.option("--tokens", metavar="FILE", help="File of tokens, as for metrics.tokens.")
@click.option("--certificate", metavar="PEM", help="Of the server, for TLS.")
@click.option("--key", metavar="PEM", help="The certificate's private key.")
def command(
    folder: str, at: str, tokens: str | None, certificate: str | None, key: str | None
) -> None:
    """Show the runs in DIR on a web page, those being played as they get on.

    DIR is a run directory or a folder of them, `runs` unless given; new runs appear by themselves.
    A token is always needed: one of the file, RAYDP_SIM_TOKEN of the environment, or one of two
    that are made and printed now. It needs no internet, and ends with Ctrl-C.
    """
    if not serving.available():
        raise InputError(serving.MISSING)
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"{folder}: there is no such folder; give a run directory or a folder")
    if (certificate is None) != (key is None):
        raise InputError("--certificate and --key go together; give both, or neither")
    for option, file in (("--certificate", certificate), ("--key", key)):
        if file is not None and not Path(file).is_file():
            raise InputError(f"{option} is {file!r}; there is no such file")
    try:
        host, port = host_and_port(at)
    except ValueError as error:
        raise InputError(f"--at is {at!r}; {error}") from None
    given = issued(tokens)
    search_also(Path.cwd())
    with contextlib.closing(serving.bound(host, port, "--at")) as listening:
        try:
            server = serving.Server(
                listening,
                Runs(place),
                given.grants,
                certificate,
                key,
                epsilons=epsilons,
                presence=availability,
            )
        except OSError:
            raise InputError("--certificate or --key is not valid PEM") from None
        url = serving.address(host, listening.getsockname()[1], certificate is not None)
        # From the first line on whoever started it may end it.
        with contextlib.suppress(KeyboardInterrupt):
            click.echo(f"page at {url}")
            for what, token in given.made.items():
                click.echo(f"  token for {what}: {token}")
            if (warning := unencrypted(host, certificate)) is not None:
                click.echo(f"warning: {warning}", err=True)
            server.run()
