"""`raydp-sim`: finds the commands of this package and decides how each of them may end."""

import contextlib
import errno
import functools
import importlib
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import click

from raydp_sim import cli
from raydp_sim.errors import InputError, RunError, bad_field, shortened
from raydp_sim.version import __version__

_EPILOG = """\b
Example:
  raydp-sim list
  raydp-sim run quickstart

\b
Exit codes: 0 done, 2 bad input, 3 a run that cannot go on (it can be resumed) or a privacy bound
caught being wrong (nothing is reported), 130 interrupted (it can be resumed), 1 a failed check or
anything else.
"""

# Commands that take long enough for faster kernels to matter.
_PLAYING = ("run", "resume", "sweep", "bench")

_FIRST_LINE = re.compile(r'"""`raydp-sim (\w+)`: (.+)"""')


@functools.cache
def summaries() -> dict[str, str]:
    """Return what every command is for: a new one is a new file and nothing else.

    The first line of a command's file says both. So nothing is imported but the command wanted.

    Example:
        >>> summaries()["run"]
        'Play a scenario.'
    """
    found = {}
    for path in sorted(Path(cli.__path__[0]).glob("*.py")):
        with path.open(encoding="utf-8") as lines:
            said = _FIRST_LINE.fullmatch(lines.readline().strip())
        if said is not None and said[1] == path.stem:
            found[path.stem] = said[2][0].upper() + said[2][1:]
    return found


class Commands(click.Group):
    """A group that turns every way to fail into one message and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(summaries())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command and return it."""
        if cmd_name not in summaries():
            return None
        found: click.Command = importlib.import_module(f"{cli.__name__}.{cmd_name}").command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what each command is for without importing it."""
        with formatter.section("Commands"):
            formatter.write_dl(list(summaries().items()))

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read the options before the command."""
        with _briefly():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; no traceback reaches the user unless asked for."""
        try:
            with _briefly():
                return super().invoke(ctx)
        except InputError as error:
            _end(ctx, error, 2)
        except RunError as error:
            _end(ctx, error, 3)
        except KeyboardInterrupt as error:
            _end(ctx, error, 130)
        except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
                name = str(error.filename)
                _end(ctx, bad_field("a path", name, "it is too long for the file system"), 2)
            _end(ctx, error, 1)


@contextlib.contextmanager
def _briefly() -> Iterator[None]:
    """Keep what is said of a wrong option short, however long the option was."""
    try:
        yield
    except click.UsageError as error:
        said = error.format_message()
        if shortened(said) == said:
            raise
        raise click.UsageError(shortened(said), error.ctx) from None


def _end(ctx: click.Context, error: BaseException, code: int) -> NoReturn:
    if ctx.params.get("debug"):
        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    message = str(error)
    if code == 1:
        first = message.splitlines()[0] if message else ""
        message = f"unexpected {type(error).__name__}: {first} (--debug shows where)"
    elif code == 130 and not message:
        message = "interrupted"
    from raydp_sim.cli.tables import wrapped_for_stderr  # here, since all else goes without rich

    click.echo(wrapped_for_stderr(f"raydp-sim: {message}"), err=True)
    ctx.exit(code)


@click.group(cls=Commands, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="raydp-sim")
@click.option(
    "--debug",
    is_flag=True,
    envvar="RAYDP_SIM_DEBUG",
    help="Show tracebacks (or RAYDP_SIM_DEBUG=1).",
)
@click.pass_context
def main(ctx: click.Context, debug: bool) -> None:
    """Simulate private distributed learning on Ray, from scenario files."""
    from raydp_sim.kernels import CHOICE  # here, since `--help` needs no NumPy

    if CHOICE.refused:
        raise InputError(CHOICE.refused)
    if CHOICE.notice and ctx.invoked_subcommand in _PLAYING:
        click.echo(CHOICE.notice, err=True)
