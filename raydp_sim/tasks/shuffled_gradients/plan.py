"""Which records an epoch uses and whether its steps are noisy: Algorithms 2 to 6 of 004."""

from typing import Literal, NamedTuple, get_args

from raydp_sim.errors import bad_field

Algorithm = Literal["plain", "private", "priv-pub", "pub-priv", "interleaved", "public-only"]


class Epoch(NamedTuple):
    """An epoch of n steps.

    Attributes:
        private: steps along private records, first; the others use public ones, in their order.
        noisy: whether steps have noise, all of them: Interleaved's guarantee rests on that of the
            public steps, which come after the last private one.
    """

    private: int
    noisy: bool


def epochs(algorithm: Algorithm, count: int, records: int, share: float = 0.5) -> tuple[Epoch, ...]:
    """Return the epochs of a run.

    Args:
        algorithm: `plain` ShuffleG without privacy; `private` DP-ShuffleG; `priv-pub` private
            epochs first; `pub-priv` public ones first; `interleaved`, both in every epoch;
            `public-only`.
        count: K.
        records: n.
        share: p of what is private: of epochs, or of the steps of an epoch.

    Example:
        >>> [epoch.private for epoch in epochs("pub-priv", 4, 10, 0.75)]
        [0, 10, 10, 10]
    """
    if algorithm not in get_args(Algorithm):
        raise bad_field("algorithm", algorithm, f"choose one of {', '.join(get_args(Algorithm))}")
    if count < 1 or records < 1:
        raise bad_field("epochs", count, "there must be at least one epoch, of one record")
    whole, public = Epoch(records, True), Epoch(0, False)
    if algorithm == "plain":
        return (Epoch(records, False),) * count
    if algorithm == "private":
        return (whole,) * count
    if algorithm == "public-only":
        return (public,) * count
    if not 0.0 < share <= 1.0:
        raise bad_field("share", share, "it must lie in (0, 1]")
    if algorithm == "interleaved":
        used = int(share * records)
        if used < 1:
            raise bad_field("share", share, f"it leaves none of {records} private records")
        return (Epoch(used, True),) * count
    first = int(share * count) if algorithm == "priv-pub" else int((1.0 - share) * count)
    if not 1 <= first <= count - 1:
        raise bad_field(
            "share", share, f"of {count} epochs {first} would come first; give 1 to K-1"
        )
    one, other = (whole, public) if algorithm == "priv-pub" else (public, whole)
    return (one,) * first + (other,) * (count - first)


def private_epochs(plan: tuple[Epoch, ...]) -> int:
    """Return how many epochs a private record is in."""
    return sum(epoch.private > 0 for epoch in plan)


def tail(plan: tuple[Epoch, ...], records: int) -> int:
    """Return how many noisy steps the last private record of an epoch has from its own on."""
    used = [epoch for epoch in plan if epoch.private]
    return min((records + 1 - epoch.private for epoch in used), default=records + 1)
