"""Mechanisms with keys: that keys can be drawn again, open reports, and hide what they should."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.check.enumeration import contributions_of, message_loss, moments
from raydp_sim.check.finding import NotChecked, check, plural, require
from raydp_sim.check.laws import DRAWN, chance
from raydp_sim.check.samples import ALPHA
from raydp_sim.check.subject import Subject
from raydp_sim.mechanisms.leveled import Leveled
from raydp_sim.mechanisms.wires.key_columns import pack_keys, unpack_keys
from raydp_sim.random import Stream

_ROUNDING = 1e-9


def _leveled(subject: Subject) -> Leveled:
    mechanism = subject.mechanism
    if not isinstance(mechanism, Leveled):
        raise NotChecked(f"{subject.name} has no keys")
    return mechanism


@check("keys are drawn again alike")
def again(subject: Subject) -> str:
    """`keys` gives what `released` gave, whoever shares the call; they fit their bits."""
    mechanism = _leveled(subject)
    values = mechanism.domain.admit(subject.some(2000))
    ids = np.random.default_rng(1).choice(2**32, len(values), replace=False).astype(np.uint32)
    stream = Stream(4).at("randomize", 2).clients(ids)
    payload, keys = mechanism.released(values, stream)
    levels = len(mechanism.levels)
    require(
        keys.shape == (len(values), levels) and keys.dtype.kind == "u",
        f"`released` gave keys of {keys.dtype} and shape {keys.shape}; they must be unsigned, of "
        f"shape ({len(values)}, {levels})",
    )
    sent = mechanism.messages(values, stream).payload
    require(np.array_equal(sent, payload), "`messages` and `released` sent different reports")
    require(not keys[:, -1].any(), "the public level has keys; its column must be 0")
    require(
        int(keys.max()) < 1 << mechanism.key_bits,
        f"a key is {keys.max()}, but `key_bits` is {mechanism.key_bits}",
    )
    mixed = np.random.default_rng(2).permutation(len(values))[:11]
    for rows, words in ((slice(None), "all"), (slice(0, 7), "the first 7"), (mixed, "11 mixed")):
        require(
            np.array_equal(mechanism.keys(stream.take(rows)), keys[rows]),
            f"`keys` of {words} clients are not those of `released`; draw them from the stream and "
            "from nothing else",
        )
    for level in range(levels):
        packed = pack_keys(keys[:, level], mechanism.key_bits)
        back = unpack_keys(packed, mechanism.key_bits, len(values))
        require(np.array_equal(back, keys[:, level]), "packed keys came back as others")
    return f"{len(values):,} clients, {plural(levels, 'level')} of {mechanism.key_bits} bits"


@check("every level loses what is stated")
def losses(subject: Subject) -> str:
    """The exact law of what a level's readers see has the level's loss, and no more."""
    mechanism, said = _leveled(subject), []
    for level, asked in enumerate(mechanism.levels):
        stated = mechanism.event_at(level).epsilon
        require(stated <= asked, f"level {level} states {stated:.6g}, but is to lose {asked:.6g}")
        (law,) = mechanism.view(level).laws(subject.values)
        exact = float(message_loss(law).max())
        require(
            exact <= stated,
            f"readers of level {level} tell two inputs apart with a loss of {exact:.6g}; "
            f"{stated:.6g} is stated",
        )
        if mechanism.tight and math.isfinite(stated):
            room = _ROUNDING + 2.0**-52 * math.exp(min(stated, 40.0))
            require(exact >= stated - room, f"level {level} loses {exact:.6g} of {stated:.6g} only")
        said.append(f"{exact:.4g}")
    return f"exactly {', '.join(said)}"


@check("every level estimates the value")
def estimates(subject: Subject) -> str:
    """By each level's law, its decoder's exact mean is the value and its exact error `mse`."""
    mechanism, values = _leveled(subject), subject.values
    for level in range(len(mechanism.levels)):
        view = mechanism.view(level)
        parts = contributions_of(view.decode, mechanism.zero())
        mean, variance = moments(view.laws(values), parts)
        off = float(np.abs(mean - mechanism.domain.embed(values)).max())
        require(off <= _ROUNDING * 2.0, f"level {level}'s exact mean is off by {off:.3g}")
        stated = view.mse(values)
        require(
            np.allclose(variance, stated, rtol=_ROUNDING, atol=1e-9),
            f"level {level} errs {variance.max():.6g}, but its `mse` states {stated.max():.6g}",
        )
        require(
            view.worst_mse() >= stated.max() * (1 - 1e-12),
            f"level {level} errs {stated.max():.6g}, more than its `worst_mse`",
        )
        reach = parts.added.max() - parts.added.min()
        if math.isfinite(view.loss):
            require(
                view.span >= reach * (1 - _ROUNDING),
                f"a decoded report of level {level} varies by {reach:.6g}, more than its `span`",
            )
    return f"{plural(len(mechanism.levels), 'level')}, {plural(len(values), 'input')}"


@check("opened reports follow their level's law")
def opened(subject: Subject) -> str:
    """Chi-square tests at every level, straight from `released` and after a promotion.

    Chance of a false alarm: 1e-8 for each input and level.
    """
    mechanism = _leveled(subject)
    for number, value in enumerate(subject.values[[0, -1]]):
        values = mechanism.domain.admit(np.tile(value, (DRAWN, 1)))
        ids = np.arange(DRAWN * number, DRAWN * (number + 1))
        stream = Stream(6).at("opened").clients(ids)
        payload, keys = mechanism.released(values, stream)
        for level in range(len(mechanism.levels)):
            seen = mechanism.opened(payload, keys[:, level], level)
            require(seen.dtype == payload.dtype, "`opened` changed the type of the reports")
            _follow(mechanism, value, level, seen[:, 0].astype(int))
            if level < mechanism.public:
                more = mechanism.promotion(stream, level + 1, level)
                require(
                    np.array_equal(keys[:, level + 1] ^ more, keys[:, level]),
                    f"a promotion to level {level} does not give its key",
                )
    return f"2 inputs, {DRAWN:,} reports each"


def _follow(mechanism: Leveled, value: Any, level: int, seen: NDArray[np.int_]) -> None:
    law = mechanism.view(level).laws(value[None])[0][0]
    found = chance([(seen, law)])
    require(
        found > ALPHA,
        f"what {DRAWN:,} reports show at level {level} has chance {found:.1g} by its law",
    )


@check("keys say nothing about the value")
def independent(subject: Subject) -> str:
    """Keys are the same whatever clients hold, and a level's readers see nothing more by theirs.

    Given the value, what is seen at a level is independent of its key: a chi-square test of both
    together, chance of a false alarm 1e-8.
    """
    mechanism = _leveled(subject)
    stream = Stream(8).at("independent").clients(np.arange(DRAWN))
    values = [
        mechanism.domain.admit(np.tile(value, (DRAWN, 1))) for value in subject.values[[0, -1]]
    ]
    both = [mechanism.released(each, stream) for each in values]
    require(
        np.array_equal(both[0].keys, both[1].keys), "keys depend on the value; draw them without it"
    )
    payload, keys = both[0]
    for level in range(mechanism.public):
        column = keys[:, level].astype(int)
        symbols = mechanism.opened(payload, keys[:, level], level)[:, 0].astype(int)
        law = mechanism.view(level).laws(subject.values[:1])[0][0]
        # Given how often each key came, so that the keys' own law is not needed.
        shares = np.bincount(column) / DRAWN
        found = chance([(column * len(law) + symbols, np.outer(shares, law).ravel())])
        require(found > ALPHA, f"the key of level {level} depends on what it opens: {found:.1g}")
    return f"{DRAWN:,} reports at {plural(mechanism.public, 'level')} with keys"


KEY_CHECKS = (again, losses, estimates, opened, independent)
