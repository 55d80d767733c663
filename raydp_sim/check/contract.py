"""The contract of a mechanism: shapes, seeds, placement, the wire and the accumulator."""

import math

import numpy as np
from pydantic import ValidationError

from raydp_sim.check.finding import NotChecked, check, plural, require
from raydp_sim.check.samples import SERVER, folded, reports
from raydp_sim.check.subject import Subject
from raydp_sim.mechanisms import MECHANISMS
from raydp_sim.mechanisms.base import Mechanism, Messages
from raydp_sim.privacy.events import (
    CentralRelease,
    EnsembleRelease,
    LocalReport,
    ShuffledRelease,
)
from raydp_sim.random import Stream


@check("shapes and types")
def shapes(subject: Subject) -> str:
    """Payload (n, messages, ...), counts int64, estimates float64 of the domain's dimension."""
    mechanism, values = subject.mechanism, subject.some(9)
    sent = mechanism.messages(mechanism.domain.admit(values), Stream(5).clients(np.arange(9)))
    require(
        isinstance(sent, Messages),
        f"`messages` returned {type(sent).__name__}; return Messages(payload)",
    )
    payload = sent.payload
    expected = (9, mechanism.messages_per_report)
    require(
        payload.shape[:2] == expected,
        f"`messages` returned a payload of shape {payload.shape} for 9 clients; its first two "
        f"axes must be {expected}",
    )
    counts = folded(mechanism, payload)
    require(
        counts.dtype == np.int64 and counts.shape == mechanism.zero().shape,
        f"`fold` returned {counts.dtype} of shape {counts.shape}; it must be int64 of the shape "
        f"of `zero`, {mechanism.zero().shape}",
    )
    estimate, dimension = mechanism.decode(counts, SERVER), mechanism.domain.dimension
    require(
        estimate.shape == (dimension,) and estimate.dtype == np.float64,
        f"`decode` returned {estimate.dtype} of shape {estimate.shape}; it must be float64 of "
        f"shape ({dimension},), the domain's dimension",
    )
    require(np.isfinite(estimate).all(), "`decode` returned numbers that are not finite")
    if subject.has("mse"):
        errors = mechanism.mse(values)
        require(errors.shape == (9,), f"`mse` has shape {errors.shape} for 9 clients")
    return "9 clients: payload, accumulator, estimate"


@check("the event fits the guarantee")
def event(subject: Subject) -> str:
    """The event has the type of where noise is drawn, and no more loss than was asked for."""
    mechanism = subject.mechanism
    stated = mechanism.event()
    central = EnsembleRelease if isinstance(stated, EnsembleRelease) else CentralRelease
    local = LocalReport if mechanism.where == "client" else central
    wanted = ShuffledRelease if mechanism.guarantee == "shuffled-only" else local
    require(
        isinstance(stated, wanted),
        f"`event` is a {type(stated).__name__}; where = {mechanism.where!r} and guarantee = "
        f"{mechanism.guarantee!r} make it a {wanted.__name__}",
    )
    if mechanism.guarantee == "none":
        require(math.isinf(stated.epsilon), f"guarantee is 'none', but epsilon {stated.epsilon:g}")
        return "no guarantee, epsilon infinite"
    asked = mechanism.need_epsilon()
    require(
        0.0 < stated.epsilon <= asked,
        f"`event` states epsilon {stated.epsilon:g}; it must be > 0 and at most "
        f"{mechanism.epsilon_field}, {asked:g}",
    )
    approximate = mechanism.guarantee in ("approximate", "shuffled-only")
    require(
        (stated.delta > 0.0) == approximate,
        f"`event` states delta {stated.delta:g}, but guarantee is {mechanism.guarantee!r}",
    )
    delta = f", delta {stated.delta:g}" if stated.delta else ""
    return f"{wanted.__name__}, epsilon {stated.epsilon:g}{delta}"


@check("the seed decides every draw")
def seeds(subject: Subject) -> str:
    """The same seed gives the same reports; another seed or another release gives others."""
    mechanism, values = subject.mechanism, subject.many(4000)
    one = reports(mechanism, values, seed=1)
    require(
        np.array_equal(one, reports(mechanism, values, seed=1)),
        "the same seed gave other reports; draw only from the stream that `messages` is given",
    )
    if mechanism.where == "aggregator":
        # One bit may agree by chance with that of another seed, but not with those of 64.
        bit = mechanism.tells == "majority"
        counts = mechanism.zero() if bit else folded(mechanism, one)
        first, again = (mechanism.decode(counts, Stream(1)) for _ in range(2))
        seen = (mechanism.decode(counts, Stream(seed)) for seed in range(2, 66 if bit else 3))
        require(np.array_equal(first, again), "the same seed gave another estimate of `decode`")
        require(
            any(not np.array_equal(first, other) for other in seen),
            "`decode` gave the same estimate with another seed; the aggregator must draw noise",
        )
        return "`decode` with seeds 1, 1 and 2"
    for name, others in (
        ("another seed", reports(mechanism, values, seed=2)),
        ("another release", reports(mechanism, values, seed=1, release=1)),
    ):
        if np.array_equal(one, others) and mechanism.guarantee == "none":
            raise NotChecked("it draws nothing, and states no guarantee")
        if np.array_equal(one, others) and subject.hardly_random:
            raise NotChecked(f"reports agree, as may be at epsilon {mechanism.event().epsilon:g}")
        require(
            not np.array_equal(one, others),
            f"{name} gave the same {len(one):,} reports; draw from the stream that `messages` is "
            "given",
        )
    return f"{len(one):,} reports, again, with another seed and in another release"


@check("placement changes no report")
def placement(subject: Subject) -> str:
    """A client's report does not depend on who else is in the call, or in which order."""
    mechanism = subject.mechanism
    values = mechanism.domain.admit(subject.many(2000))
    ids = np.random.default_rng(1).choice(2**32, len(values), replace=False).astype(np.uint32)
    stream = Stream(4).at("randomize", 2).clients(ids)
    whole = mechanism.messages(values, stream).payload
    why = (
        "a client's report changed with the clients beside it in the call ({}); let each row "
        "depend on its own value and on its own row of the stream's draws"
    )
    few = slice(0, 23)
    some = mechanism.messages(values[few], stream.take(few))
    require(np.array_equal(some.payload, whole[few]), why.format(f"23 of {len(values):,}"))
    for size in (1, 3, 7):
        rows = [slice(first, min(first + size, 23)) for first in range(0, 23, size)]
        parts = [mechanism.messages(values[part], stream.take(part)) for part in rows]
        together = np.concatenate([part.payload for part in parts])
        require(np.array_equal(together, whole[few]), why.format(f"blocks of {size}"))
        clipped = sum(part.clipped for part in parts)
        require(
            clipped == some.clipped,
            f"blocks of {size} count {clipped} clipped values, one call {some.clipped}",
        )
    mixed = np.random.default_rng(2).permutation(len(values))[:11]
    part = mechanism.messages(values[mixed], stream.take(mixed))
    require(np.array_equal(part.payload, whole[mixed]), why.format("another order"))
    return f"{len(values):,} clients in one call, 23 in blocks of 1, 3 and 7, 11 mixed"


@check("no clients, no report")
def nobody(subject: Subject) -> str:
    """An empty block gives no report, and the empty accumulator decodes to finite numbers."""
    mechanism = subject.mechanism
    payload = reports(mechanism, subject.values[:0])
    require(len(payload) == 0, f"{len(payload)} reports of no clients")
    counts = folded(mechanism, payload)
    require(np.array_equal(counts, mechanism.zero()), "folding no reports changed `zero`")
    estimate = mechanism.decode(mechanism.zero(), SERVER)
    require(
        np.isfinite(estimate).all(), "`decode` of no reports is not finite; divide by max(1, n)"
    )
    return "an empty block and an empty accumulator"


@check("the wire is exact")
def wire(subject: Subject) -> str:
    """`encode` packs a report into ceil(bits / 8) bytes, and `unpack` gives it back exactly."""
    mechanism = subject.mechanism
    payload = reports(mechanism, subject.some(50))
    packed, octets = mechanism.encode(payload), math.ceil(mechanism.bits / 8)
    require(
        packed.dtype == np.uint8 and packed.shape == (50, octets),
        f"`encode` made {packed.dtype} of shape {packed.shape} of 50 reports; {mechanism.bits} "
        f"bits are uint8 of shape (50, {octets})",
    )
    back = mechanism.unpack(packed)
    require(
        back.dtype == payload.dtype and back.shape == payload.shape,
        f"`unpack` gave {back.dtype} of shape {back.shape}; the payload is {payload.dtype} of "
        f"shape {payload.shape}",
    )
    require(np.array_equal(back, payload), "`unpack` did not give back what `encode` was given")
    return f"50 reports of {plural(mechanism.bits, 'bit')} in {plural(octets, 'byte')}"


@check("sums in any order")
def folding(subject: Subject) -> str:
    """The accumulator depends neither on the order of messages nor on how they are split."""
    mechanism = subject.mechanism
    payload = reports(mechanism, subject.some(60))
    whole = folded(mechanism, payload)
    rows = payload.reshape(-1, *payload.shape[2:])
    index = np.tile(np.arange(payload.shape[1]), len(payload))
    order = np.random.default_rng(0).permutation(len(rows))
    counts = mechanism.zero()
    for part in np.array_split(order, 7):
        counts = mechanism.fold(counts, index[part], rows[part])
    require(np.array_equal(counts, whole), "`fold` depends on the order of the messages")
    halves = folded(mechanism, payload[:31]) + folded(mechanism, payload[31:])
    require(np.array_equal(halves, whole), "accumulators of two halves do not add up to the whole")
    return "60 reports in order, mixed in 7 parts, and in two halves"


@check("arguments stay as they were")
def arguments(subject: Subject) -> str:
    """`messages`, `encode`, `fold` and `decode` do not write into what they are given."""
    mechanism = subject.mechanism
    values = mechanism.domain.admit(subject.some(20)).copy()
    before, stream = values.copy(), Stream(4).clients(np.arange(20))
    payload = mechanism.messages(values, stream).payload
    require(np.array_equal(values, before), "`messages` wrote into the clients' values")
    sent, counts = payload.copy(), mechanism.zero()
    mechanism.encode(payload)
    index = np.tile(np.arange(payload.shape[1]), len(payload))
    after = mechanism.fold(counts, index, payload.reshape(-1, *payload.shape[2:]))
    require(np.array_equal(payload, sent), "`encode` or `fold` wrote into the payload")
    require(np.array_equal(counts, mechanism.zero()), "`fold` wrote into its accumulator")
    kept = after.copy()
    mechanism.decode(after, SERVER)
    require(np.array_equal(after, kept), "`decode` wrote into its accumulator")
    return "20 clients through `messages`, `encode`, `fold` and `decode`"


@check("a target is shared between releases")
def target(subject: Subject) -> str:
    """`calibrated` turns a target for the whole run into a guarantee per release."""
    mechanism, cls = subject.mechanism, type(subject.mechanism)
    own = {cls.epsilon_field, cls.delta_field}
    parameters = {k: v for k, v in mechanism.model_dump(exclude_none=True).items() if k not in own}
    wanted = {**parameters, "target": {"epsilon": 8.0, "delta": 1e-6}}
    if mechanism.guarantee == "none":
        try:
            cls.model_validate(wanted)
        except ValidationError:
            return "refused, for it states no guarantee"
        require(False, "a target was accepted, though guarantee is 'none'")
    if cls.calibrated is not Mechanism.calibrated:
        raise NotChecked(f"{subject.name} has a `calibrated` of its own")
    whole = cls.model_validate(wanted)
    try:
        whole.event()
    except ValueError:
        pass
    else:
        require(False, "`event` stated a loss before the target was calibrated; use need_epsilon()")
    part = whole.calibrated(4)
    loss = part.event()
    require(part.target is None and part.need_epsilon() == 2.0, "epsilon 8 of 4 is not 2 each")
    require(loss.epsilon <= 2.0, f"epsilon 8 of 4 releases became {loss.epsilon:g} each")
    if cls.delta_field is not None:
        require(math.isclose(loss.delta, 0.25e-6), f"delta 1e-6 of 4 became {loss.delta:g} each")
    require(part.calibrated(4) is part, "`calibrated` changed what has no target")
    return "epsilon 8 of 4 releases is at most 2 each"


@check("the scenario file keeps it")
def scenario_file(subject: Subject) -> str:
    """Writing the mechanism into a scenario file and reading it back changes nothing."""
    mechanism = subject.mechanism
    again: Mechanism = MECHANISMS.parse(MECHANISMS.dump(mechanism))
    require(again == mechanism, f"it came back as {again!r}")
    require(again.bits == mechanism.bits, f"its {mechanism.bits} bits became {again.bits}")
    return "written and read back"
