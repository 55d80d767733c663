"""Curves of the l1 error of estimated distributions (000 Section 7.7)."""

import json
import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from raydp_sim.errors import InputError, bad_field
from raydp_sim.figures import errors
from raydp_sim.figures.errors import Value
from raydp_sim.figures.key_formulas import geometric
from raydp_sim.figures.model import Curve, Frequencies, Panel
from raydp_sim.mechanisms.base import Floats
from raydp_sim.mechanisms.hadamard_bit import HadamardBit
from raydp_sim.mechanisms.parts.distributions import errors as off
from raydp_sim.mechanisms.parts.distributions import predicted, repaired
from raydp_sim.mechanisms.parts.hadamard import fwht
from raydp_sim.mechanisms.parts.hadamard_sign import HadamardSign
from raydp_sim.privacy.bound import Result
from raydp_sim.random import Stream

_SEED = 77
_KNOWN = ("epsilon0", "clients", "categories")


def check(curves: Mapping[str, Curve], panel: Panel, name: str, x: float, field: str) -> None:
    """Refuse a curve that is unknown or cannot be computed at x.

    Raises:
        InputError: names the field, its value and the remedy.
    """
    known = errors.setting(panel, x, _KNOWN, ("clients", "categories"))
    if errors.find(curves, name, field).frequencies is None:
        raise bad_field(field, name, f"figure.curves.{name} needs frequencies")
    for each in _KNOWN:
        if each not in known:
            raise InputError(f"fixed.{each} is missing; curve {name!r} needs it: add it")
    columns = 1 << (int(known["categories"]) - 1).bit_length()
    if known["clients"] < columns:
        place = "values" if panel.sweep == "clients" else "fixed.clients"
        raise bad_field(place, known["clients"], f"there are {columns} groups; give as many")


def value(curves: Mapping[str, Curve], panel: Panel, name: str, x: float) -> Value:
    """Return the mean l1 error over repetitions, with its standard error, or its prediction."""
    known, curve = errors.setting(panel, x, _KNOWN, ("clients", "categories")), curves[name]
    assert curve.frequencies is not None  # `check` has seen to it
    written = json.dumps(known, sort_keys=True)
    return _value(curve.frequencies.model_dump_json(), written, curve.repetitions)


@lru_cache(maxsize=10_000)
def _value(written: str, parameters: str, repetitions: int) -> Value:
    wanted, known = Frequencies.model_validate_json(written), json.loads(parameters)
    n, k = int(known["clients"]), int(known["categories"])
    bit = HadamardBit(
        epsilon_local=known["epsilon0"], categories=k, randomness=wanted.randomness
    ).sign
    share = geometric(k)
    if wanted.value == "predicted":
        each = np.full(k, bit.grouped_variance(share, n))
        return Value(Result(predicted(share, each, wanted.repair).l1), "predicted")
    found = np.empty(repetitions)
    for r in range(repetitions):
        drawn = grouped_estimate(bit, share, n, Stream(_SEED).at("frequencies", r))
        found[r] = off(repaired(drawn, wanted.repair), share).l1
    spread = float(found.std(ddof=1)) / math.sqrt(repetitions)
    return Value(
        Result(float(found.mean()), None, f"{repetitions} repetitions"), "simulated", spread
    )


def grouped_estimate(bit: HadamardSign, share: Floats, clients: int, place: Stream) -> Floats:
    """Draw the estimate of clients in groups i modulo K, whose categories are independent.

    The bits of a group are then independent and equally likely to be 1, so their sum is binomial:
    this is the exact law, without drawing every client.
    """
    padded = np.zeros((1, bit.columns))
    padded[0, : bit.categories] = share
    one = bit.down + bit.gap * (fwht(padded)[0] + 1.0) / 2.0
    sizes = clients // bit.columns + (np.arange(bit.columns) < clients % bit.columns)
    ones = place.generator().binomial(sizes, np.clip(one, 0.0, 1.0))
    counts = np.empty((1, 2 * bit.columns), np.int64)
    counts[0, 1::2], counts[0, 0::2] = ones, sizes - ones
    return bit.grouped(counts)
