"""What a check finds: passed, failed or not applicable, and why in one sentence."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

Status = Literal["passed", "failed", "not applicable"]
S = TypeVar("S")
_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Finding:
    """The outcome of one check.

    Attributes:
        check: the check's name.
        status: "passed", "failed" or "not applicable".
        why: what was tried, what is wrong, or what is missing.
    """

    check: str
    status: Status
    why: str


class Failed(Exception):
    """A check found something wrong; the message says what."""


class NotChecked(Exception):
    """A check does not apply; the message says why."""


@dataclass(frozen=True)
class Check(Generic[S]):
    """A named check. Its body returns what it tried, or raises `Failed` or `NotChecked`.

    Calling it never raises what the body raised: an error of the checked class is a finding too.

    Example:
        >>> @check("is even")
        ... def even(number: int) -> str:
        ...     require(number % 2 == 0, f"{number} is odd")
        ...     return "divided by 2"
        >>> even(3)
        Finding(check='is even', status='failed', why='3 is odd')
    """

    name: str
    body: Callable[[S], str]

    def __call__(self, subject: S) -> Finding:
        """Return what the body found."""
        try:
            return Finding(self.name, "passed", self.body(subject))
        except Failed as found:
            return Finding(self.name, "failed", str(found))
        except NotChecked as why:
            return Finding(self.name, "not applicable", str(why))
        except Exception as error:
            return Finding(self.name, "failed", raised(error))


def check(name: str) -> Callable[[Callable[[S], str]], Check[S]]:
    """Make a check of a function."""

    def named(body: Callable[[S], str]) -> Check[S]:
        return Check(name, body)

    return named


def require(holds: Any, why: str) -> None:
    """Fail the check unless something holds."""
    if not holds:
        raise Failed(why)


def plural(count: int, word: str) -> str:
    """Count things.

    Example:
        >>> plural(1, "message"), plural(2000, "client")
        ('1 message', '2,000 clients')
    """
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def raised(error: Exception) -> str:
    """Say in one line what was raised, and by which method that a check called.

    Example:
        >>> raised(ValueError("no such client"))
        'it raised ValueError: no such client'
    """
    frames = (frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__))
    names = (code.co_name for code in frames if _HERE not in Path(code.co_filename).parents)
    # What Python itself calls, such as the `__get__` of a property, tells nobody anything.
    called = next((name for name in names if not name.startswith("__")), None)
    lines = str(error).splitlines()
    who = "it" if called is None else f"`{called}`"
    return f"{who} raised {type(error).__name__}{': ' + lines[0] if lines else ''}"
