"""Tables that fit the terminal: columns are left out or stacked, never cut, and no word is broken.

Pipes have no width; there every command says itself how wide its table is.
"""

import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import click
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        head: what stands above it.
        right: whether it is of numbers.
        wraps: whether its cells may be wrapped between words.
        bold: whether it names the rows.
    """

    head: str
    right: bool = True
    wraps: bool = False
    bold: bool = False


@dataclass(frozen=True)
class Row:
    """One row; one with a single cell is a title above the rows that follow."""

    cells: tuple[str, ...]
    style: str = ""


@dataclass(frozen=True)
class Laid:
    """A table as it is laid out.

    Attributes:
        table: the table.
        needed: columns of characters without which it would be cut.
        left_out: heads of the columns that found no room.
    """

    table: Table
    needed: int
    left_out: tuple[str, ...] = ()

    def show(self, otherwise: int) -> None:
        """Print it, without blanks at the ends of lines where nobody looks."""
        # Where even this is too wide, better a line that the terminal wraps than a number cut.
        room = max(width(otherwise), self.needed)
        if is_terminal():
            Console(width=room).print(self.table, highlight=False, markup=False, soft_wrap=True)
            return
        console = Console(width=room)
        with console.capture() as captured:
            console.print(self.table, highlight=False, markup=False)
        click.echo("\n".join(line.rstrip() for line in captured.get().rstrip("\n").splitlines()))

    def explain(self) -> None:
        """Say which columns found no room."""
        if self.left_out:
            heads = ", ".join(dict.fromkeys(self.left_out))
            say(f"No room for: {heads}; widen the terminal, or see --json.", dim=True)


def is_terminal() -> bool:
    """Say whether a person is looking at standard output."""
    return sys.stdout.isatty()


def width(otherwise: int) -> int:
    """Return how many columns there are: the terminal's, or as many as said."""
    return Console().width if is_terminal() else otherwise


def fitted(
    columns: Sequence[Column],
    rows: Sequence[Row],
    room: int,
    spare: Sequence[str] = (),
    ruled: bool = False,
    headed: bool = True,
) -> Laid:
    """Lay out a table; while it is too wide, columns are left out.

    Args:
        columns: all of them.
        rows: with a cell for each.
        room: columns of characters.
        spare: heads of columns that may be left out, the least important first.
        ruled: whether a line goes under the heads.
        headed: whether the heads are shown at all.

    Example:
        >>> columns = [Column("name", right=False), Column("bits"), Column("source", right=False)]
        >>> rows = [Row(("krr", "7", "Kairouz et al. 2014"))]
        >>> [fitted(columns, rows, room, ["source"]).left_out for room in (40, 20)]
        [(), ('source',)]
    """
    left_out: list[str] = []
    kept = list(range(len(columns)))
    for head in spare:
        if _needed(columns, rows, kept, ruled) <= room:
            break
        left_out.append(head)
        kept = [place for place in kept if columns[place].head != head]
    needed = _needed(columns, rows, kept, ruled)
    table = _made(columns, rows, kept, ruled)
    table.show_header = headed
    return Laid(table, needed, tuple(left_out))


def stacked(columns: Sequence[Column], rows: Sequence[Row], room: int) -> list[Laid]:
    """Lay out a table as several, one below the other, each with the first column again.

    Example:
        >>> columns = [Column("name", right=False), Column("error"), Column("epsilon")]
        >>> made = stacked(columns, [Row(("steady", "0.1", "0.5"))], room=16)
        >>> [[column.header for column in laid.table.columns] for laid in made]
        [['name', 'error'], ['name', 'epsilon']]
    """
    groups: list[list[int]] = [[0]]
    for place in range(1, len(columns)):
        if len(groups[-1]) > 1 and _needed(columns, rows, [*groups[-1], place]) > room:
            groups.append([0])
        groups[-1].append(place)
    return [
        Laid(_made(columns, rows, kept, ruled=False), _needed(columns, rows, kept))
        for kept in groups
    ]


def say(text: str, otherwise: int | None = None, dim: bool = False) -> None:
    """Print a sentence on standard output, wrapped between words."""
    room = width(otherwise or 1 << 20)
    click.echo(click.style(_filled(text, room), dim=True) if dim else _filled(text, room))


def room_of_stderr() -> int | None:
    """Return how many columns standard error has; none where nobody is looking."""
    return shutil.get_terminal_size().columns if sys.stderr.isatty() else None


def wrapped_for_stderr(text: str) -> str:
    """Return a message as standard error should have it: wrapped on a terminal, else in one line.

    A message of several lines keeps them.
    """
    room = room_of_stderr()
    if room is None:
        return text
    return "\n".join(_filled(line, room) for line in text.splitlines())


def _filled(text: str, room: int) -> str:
    plain = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.fill(text, max(room, 20), **plain)  # type: ignore[arg-type]  # both are flags


def _needed(
    columns: Sequence[Column], rows: Sequence[Row], kept: Sequence[int], ruled: bool = False
) -> int:
    full = [row.cells for row in rows if len(row.cells) > 1]
    total = 0
    for place in kept:
        cells = [columns[place].head, *(row[place] for row in full)]
        if columns[place].wraps:
            cells = [word for cell in cells for word in cell.split()]
        if place == 0:
            cells += [row.cells[0] for row in rows if len(row.cells) == 1]
        total += max(map(cell_len, cells), default=0)
    edges = 2 if ruled else 0
    return total + 2 * (len(kept) - 1) + edges


def _made(
    columns: Sequence[Column], rows: Sequence[Row], kept: Sequence[int], ruled: bool
) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    if ruled:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for place in kept:
        column = columns[place]
        table.add_column(
            column.head,
            justify="right" if column.right else "left",
            no_wrap=not column.wraps,
            style="bold" if column.bold else "",
        )
    for row in rows:
        if len(row.cells) == 1:
            table.add_section()
            table.add_row(Text(row.cells[0], style="bold"))
        else:
            table.add_row(*(Text(row.cells[place]) for place in kept), style=row.style)
    return table
