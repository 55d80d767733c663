"""Whole numbers on the command line, which may be written as 1e6, as in scenario files."""

import click


def integer(value: str) -> int:
    """Return a whole number, written in digits or with an exponent; a type of options.

    Raises:
        click.BadParameter: it has a fraction, or is no number.

    Example:
        >>> integer("1e6"), integer("1000")
        (1000000, 1000)
    """
    try:
        return int(value)
    except ValueError:
        pass
    try:
        number = float(value)
    except ValueError:
        number = 0.5
    if not number.is_integer():
        raise click.BadParameter(f"{value!r} is no whole number")
    return int(number)
