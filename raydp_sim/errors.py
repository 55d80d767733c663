"""The two ways a command may fail, and what each tells the user."""

_LONGEST = 700


def shortened(message: str) -> str:
    """Cut a message that quotes too much in its middle: field and fix are at its ends.

    Example:
        >>> len(shortened("x" * 5000))
        700
    """
    if len(message) <= _LONGEST:
        return message
    half = (_LONGEST - 5) // 2
    return f"{message[: _LONGEST - 5 - half]} ... {message[-half:]}"


class InputError(ValueError):
    """Something the user gave cannot be used; the message names the field, the value and the fix.

    The command line ends with exit code 2 and prints the message without a traceback.
    """

    def __init__(self, message: str) -> None:
        super().__init__(shortened(message))


class RunError(RuntimeError):
    """A run cannot go on for a reason other than its input (exit code 3).

    It can be resumed, unless `resumable` says that trying again would end the same way.
    """

    def __init__(self, message: str, resumable: bool = True) -> None:
        super().__init__(message)
        self.resumable = resumable

    def __reduce__(self) -> tuple[type["RunError"], tuple[str, bool]]:
        return type(self), (str(self), self.resumable)


class Died(RunError):
    """An actor died that a run cannot do without: it is taken up from its last checkpoint.

    Attributes:
        who: died, in a word.
    """

    def __init__(self, message: str, resumable: bool = True, who: str = "an actor") -> None:
        super().__init__(message, resumable)
        self.who = who


def bad_field(field: str, value: object, remedy: str, source: str = "") -> InputError:
    """Build the one message of a bad field.

    Example:
        >>> print(bad_field("privacy.delta", -1, "it must lie in (0, 1)", "a.yaml"))
        a.yaml: privacy.delta is -1; it must lie in (0, 1)
    """
    shown = repr(value) if isinstance(value, str) else str(value)
    if len(shown) > 80:
        shown = shown[:77] + "..."
    return InputError(f"{source + ': ' if source else ''}{field} is {shown}; {remedy}")
