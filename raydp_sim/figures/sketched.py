"""Curves of the error of sketched means (004, sections 2.4.3 and A.3)."""

import json
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from raydp_sim.errors import InputError, bad_field
from raydp_sim.figures import errors
from raydp_sim.figures.errors import Value
from raydp_sim.figures.model import Curve, Panel, Sketched
from raydp_sim.mechanisms.base import Floats
from raydp_sim.mechanisms.sketching import projection, spatial
from raydp_sim.mechanisms.sketching.normaliser import normaliser
from raydp_sim.mechanisms.sketching.similarity import correlation, slope
from raydp_sim.privacy.bound import Result
from raydp_sim.random import Stream

_SEED = 24
OWN = ("kept", "groups", "alike", "correlation")
_ALIKE = ("groups", "alike", "correlation")
_KNOWN = ("clients", "dimension", *OWN)
_WHOLE = ("clients", "dimension", "kept", "alike")


def check(curves: Mapping[str, Curve], panel: Panel, name: str, x: float, field: str) -> None:
    """Refuse a curve that is unknown or cannot be computed at x.

    Raises:
        InputError: names the field, its value and the remedy.
    """
    known = errors.setting(panel, x, _KNOWN, _WHOLE)
    curve = errors.find(curves, name, field)
    if curve.sketched is None:
        raise bad_field(field, name, f"figure.curves.{name} needs sketched")
    for each in ("clients", "dimension", "kept"):
        if each not in known:
            raise InputError(f"fixed.{each} is missing; curve {name!r} needs it: add it")
    given = [each for each in _ALIKE if each in known]
    if len(given) != 1:
        raise InputError(
            f"fixed.groups is missing; give one of groups, alike and correlation, not {len(given)}"
        )
    n, d, k = (int(known[each]) for each in ("clients", "dimension", "kept"))

    def place(name: str) -> str:
        return "values" if panel.sweep == name else f"fixed.{name}"

    if not 1 <= k <= d:
        raise bad_field(place("kept"), k, f"vectors have {d} numbers")
    groups: Any = known.get("groups", (known.get("alike", 1),))
    if sum(groups) > n:
        raise bad_field(place(given[0]), known[given[0]], f"there are {n} clients")
    if known.get("correlation", 0.0) > n - 1:
        raise bad_field(place("correlation"), known["correlation"], f"at most n - 1 = {n - 1}")
    if n + 1 > d:
        raise bad_field(place("dimension"), d, f"vectors of {n} clients need more numbers")
    wanted = curve.sketched
    if wanted.encoder == "rand-proj" and projection.padded(d) != d:
        raise bad_field(place("dimension"), d, "rand-proj takes a power of two")
    closed = wanted.encoder == "rand-k" or wanted.similarity == "one"
    if wanted.value == "exact" and not closed:
        raise bad_field(field, name, "rand-proj has no closed form; give value: simulated")
    if wanted.value in ("simulated", "gain", "full-rank") and wanted.encoder == "rand-k":
        raise bad_field(field, name, "rand-k has a closed form; give value: exact")


def value(curves: Mapping[str, Curve], panel: Panel, name: str, x: float) -> Value:
    """Return the error at x, with its standard error where it was simulated."""
    known, curve = errors.setting(panel, x, _KNOWN, _WHOLE), curves[name]
    assert curve.sketched is not None  # `check` has seen to it
    written = json.dumps(known, sort_keys=True)
    return _value(curve.sketched.model_dump_json(), written, curve.repetitions)


def vectors(known: Mapping[str, Any]) -> Floats:
    """Return unit vectors of clients, as a panel's parameters say how alike they are.

    Example:
        >>> x = vectors({"clients": 21, "dimension": 32, "groups": [9, 4]})
        >>> round(correlation(x), 9)
        4.0
        >>> round(correlation(vectors({"clients": 5, "dimension": 8, "correlation": 3.0})), 9)
        3.0
    """
    n, d = int(known["clients"]), int(known["dimension"])
    if "correlation" in known:
        share = known["correlation"] / (n - 1) if n > 1 else 0.0
        out = math.sqrt(1.0 - share) * np.eye(n, d, 1)
        out[:, 0] = math.sqrt(share)
        return out
    groups = [int(size) for size in known.get("groups", (known.get("alike", 1),))]
    sizes = [*groups, *[1] * (n - sum(groups))]
    return np.eye(len(sizes), d)[np.repeat(np.arange(len(sizes)), sizes)]


@lru_cache(maxsize=10_000)
def _value(written: str, parameters: str, repetitions: int) -> Value:
    wanted, known = Sketched.model_validate_json(written), json.loads(parameters)
    x, k = vectors(known), int(known["kept"])
    (n, d), true = x.shape, correlation(x)
    note = f"R = {true:.4g}"
    alike = slope(wanted.similarity, n, true)
    if wanted.value == "exact":
        # With T = 1 the encoders err alike (Theorem 2.4.4).
        return Value(Result(spatial.error(x, k, alike), None, note), "exact")
    if wanted.value == "full-rank":
        return Value(Result(d / (n * k) - 1.0, None, f"{note}, rank nk"), "formula")
    mean, spread = simulated(x, k, alike, repetitions)
    note = f"{note}, {repetitions} draws"
    if wanted.value == "gain":
        gain = (spatial.error(x, k, alike) - mean) / spread
        return Value(Result(gain, None, note), "simulated")
    return Value(Result(mean, None, note), "simulated", spread)


@lru_cache(maxsize=10_000)
def _simulated(content: bytes, shape: tuple[int, int], k: int, alike: float, draws: int) -> Floats:
    x = np.frombuffer(content).reshape(shape)
    (n, d), middle = shape, x.mean(axis=0)
    beta = normaliser(n, k, d, alike).value
    off = np.empty(draws)
    for draw in range(draws):
        place = Stream(_SEED).at("sketched", n, k, draw).clients(np.arange(n))
        signs, rows = projection.sketches(place.words("seed")[0][:, 0], k, d)
        sent = projection.encoded(x, signs, rows)
        found = projection.decoded(signs, rows, sent, alike, beta)
        off[draw] = np.square(found - middle).sum()
    return off


def simulated(x: Floats, kept: int, alike: float, draws: int) -> tuple[float, float]:
    """Return the mean squared error of Rand-Proj-Spatial over draws, and its standard error."""
    off = _simulated(x.tobytes(), x.shape, kept, alike, draws)
    mean, spread = float(off.mean()), float(off.std(ddof=1)) / math.sqrt(draws)
    # Of a normaliser that is off by a share the error is off by twice as much.
    beta = normaliser(len(x), kept, x.shape[1], alike)
    return mean, math.hypot(spread, 2.0 * mean * beta.standard_error / beta.value)
