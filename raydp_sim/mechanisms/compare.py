"""Every mechanism of the registry at one privacy budget: what it sends and how far off it is."""

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pydantic import ValidationError

from raydp_sim.errors import InputError
from raydp_sim.mechanisms import MECHANISMS
from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.mechanisms.shuffled import calibrated_for
from raydp_sim.model import describe
from raydp_sim.privacy.errors import NotApplicable, Unsupported

Trust = Literal["local", "shuffle", "central"]

_TARGET = "shuffled-only"
_GROUPS = ("l2 ball", "linf ball", "l1 ball", "lp ball", "scalar", "binary", "bit", "category")


@dataclass(frozen=True)
class Budget:
    """What all mechanisms are given.

    Attributes:
        dimension: of the vectors, and number of categories.
        clients: whose mean is estimated.
        epsilon: of a report in the local model, of the release in the two others.
        delta: of the release in the shuffle model, and wherever a mechanism needs one.

    Example:
        >>> Budget(dimension=100, clients=10_000, epsilon=1.0).messages
        100
    """

    dimension: int
    clients: int
    epsilon: float
    delta: float = 1e-6

    @property
    def _worth(self) -> float:
        return self.clients * min(self.epsilon, self.epsilon**2)

    @property
    def messages(self) -> int:
        """Sampled coordinates that are enough behind a shuffler (Girgis & Diggavi 2024, Thm 5)."""
        return max(1, min(self.dimension, math.ceil(self._worth)))

    @property
    def levels(self) -> int:
        """Binary levels that are enough there: the rounding's 4^-levels is then below the noise."""
        return min(20, max(1, math.ceil(math.log(max(1.0, self._worth / self.dimension), 4.0))))


@dataclass(frozen=True)
class Offer:
    """One mechanism in one trust model.

    Attributes:
        bits: of one client's report on the wire.
        messages: of one client's report.
        epsilon_local: of one report; None where it has no local guarantee.
        delta_local: of one report.
        mse: worst-case mean squared error of the mean of all clients; None if not built.
        mse_is: whether some input attains it (`exact`) or not (`bound`).
        bound: which accounting gave `epsilon_local`; empty where none was needed.
        why: why there are no numbers; empty if there are.
        parameters: it was built with.
    """

    bits: int | None = None
    messages: int | None = None
    epsilon_local: float | None = None
    delta_local: float = 0.0
    mse: float | None = None
    mse_is: str | None = None
    bound: str = ""
    why: str = ""
    parameters: dict[str, Any] | None = None


@dataclass(frozen=True)
class Entry:
    """One kind of mechanism, in its own trust model and behind a shuffler.

    Attributes:
        kind, source, guarantee: as it declares.
        trust: `local`, `central` (the aggregator adds the noise), or `shuffle` if it protects
            nothing without a shuffler. With the guarantee `none` nothing is protected.
        domain: the values it takes, `dimension` numbers each; errors are comparable within one.
        unbiased: whether its estimate is the mean in expectation, for every input.
        bias: if not, when.
        own: in that trust model.
        shuffled: at the same epsilon of the release behind a shuffler; None if not asked for.
    """

    kind: str
    domain: str
    dimension: int
    trust: Trust
    guarantee: str
    unbiased: bool
    source: str
    own: Offer
    shuffled: Offer | None = None
    bias: str = ""

    def document(self) -> dict[str, Any]:
        """Return the entry as JSON has it: its own model's numbers at the top."""
        named = {
            name: getattr(self, name)
            for name in ("kind", "domain", "dimension", "trust", "guarantee", "unbiased", "source")
        }
        shuffled = None if self.shuffled is None else asdict(self.shuffled)
        return {**named, "bias": self.bias, **asdict(self.own), "shuffle": shuffled}


def catalogue(
    budget: Budget,
    kinds: Iterable[str] | None = None,
    shuffle: bool = True,
    progress: Callable[[str], None] = lambda kind: None,
) -> list[Entry]:
    """Return every kind at a budget, by domain and in it from the least error.

    Args:
        budget: what all are given.
        kinds: which; None: all that are registered.
        shuffle: whether to calibrate behind a shuffler as well, which takes a while.
        progress: called with each kind before it is built.

    Example:
        >>> entries = catalogue(Budget(4, 1000, 1.0), ["linf", "2rr"], shuffle=False)
        >>> [(entry.kind, entry.domain, entry.own.bits) for entry in entries]
        [('linf', 'linf ball', 3), ('2rr', 'bit', 1)]
    """
    found = []
    comparable = [kind for kind, cls in MECHANISMS.kinds.items() if cls.compared]
    for kind in comparable if kinds is None else kinds:
        progress(kind)
        found.append(_entry(MECHANISMS.kinds[kind], budget, shuffle))
    return sorted(found, key=_order)


def _order(entry: Entry) -> tuple[int, bool, float, float, str]:
    rank = _GROUPS.index(entry.domain) if entry.domain in _GROUPS else len(_GROUPS)
    shuffled = math.inf if entry.shuffled is None else entry.shuffled.mse or math.inf
    # What is not at equal trust, or not private at all, comes last.
    apart = entry.trust == "central" or entry.guarantee == "none"
    return rank, apart, entry.own.mse or math.inf, shuffled, entry.kind


def _entry(cls: type[Mechanism], budget: Budget, shuffle: bool) -> Entry:
    trust: Trust = "central" if cls.where == "aggregator" else "local"
    if cls.guarantee == _TARGET:
        trust = "shuffle"
    if cls.tells != "mean":
        own = Offer(why=f"it tells the {cls.tells} of votes, and no mean (docs/majority.md)")
        return Entry(cls.kind, "", 0, trust, cls.guarantee, True, cls.source, own)
    try:
        built = built_with(cls, budget)
        domain, own = _domain(built), _offer(built, budget.clients)
    except InputError as refusal:
        own = Offer(why=str(refusal))
        return Entry(cls.kind, "", 0, trust, cls.guarantee, True, cls.source, own)
    shuffled = _shuffled(cls, built, budget) if shuffle else None
    if trust == "shuffle":
        own, shuffled = Offer(why="it protects nothing without a shuffler"), own
    return Entry(
        cls.kind,
        domain,
        built.domain.dimension,
        trust,
        cls.guarantee,
        not built.bias,
        cls.source,
        own,
        shuffled if shuffle else None,
        built.bias,
    )


def _shuffled(cls: type[Mechanism], built: Mechanism, budget: Budget) -> Offer:
    if cls.where == "aggregator":
        return Offer(why="the noise is drawn by the aggregator")
    if cls.guarantee == "none":
        return Offer(why="it adds no noise")
    many = built
    with suppress(InputError):  # of the kinds whose coordinates or levels are something else
        many = built_with(cls, budget, coordinates=budget.messages, levels=budget.levels)
    try:
        made = calibrated_for(many, budget.clients, budget.epsilon, budget.delta)
        return _offer(made.mechanism, budget.clients, made.bound)
    except (InputError, NotApplicable, Unsupported) as refusal:
        return Offer(why=str(refusal))


def _domain(built: Mechanism) -> str:
    """Name the domain in which errors are comparable; of one number, all balls are the interval."""
    domain = built.domain
    if domain.norm == "category":
        return "category"
    if domain.norm == "binary":
        return "bit" if domain.dimension == 1 else "binary"
    return "scalar" if domain.dimension == 1 else f"{domain.norm} ball"


def _offer(built: Mechanism, clients: int, bound: str = "") -> Offer:
    local = built.where == "client" and built.guarantee not in (_TARGET, "none")
    given = built.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    return Offer(
        built.bits,
        built.messages_per_report,
        built.need_epsilon() if local else None,
        built.event().delta if local else 0.0,
        built.worst_mse() / clients,
        built.worst_mse_is,
        bound,
        "",
        given,
    )


def built_with(cls: type[Mechanism], budget: Budget, **wishes: Any) -> Mechanism:
    """Build a kind at a budget: radius 1, as many categories as dimensions, else its defaults.

    Sketches keep an eighth of the numbers.

    A kind that takes one number only gets dimension 1. Parameters without a default are those of
    its first example. `wishes` are parameters for those kinds that have them.

    Raises:
        InputError: says why the kind cannot be built.

    Example:
        >>> cls = MECHANISMS.kinds["linf"]
        >>> built_with(cls, Budget(8, 100, 1.0), levels=2, nothing=3).bits
        8
    """
    fields = cls.model_fields
    needed = {name for name, field in fields.items() if field.is_required()}
    given = {name: value for name, value in cls.examples[0].items() if name in needed}
    given |= {"dimension": budget.dimension, "clients": budget.clients}
    if cls.guarantee == _TARGET:
        given["target"] = {"epsilon": budget.epsilon, "delta": budget.delta}
    elif cls.guarantee != "none":
        given[cls.epsilon_field] = budget.epsilon
        if cls.delta_field is not None:
            given[cls.delta_field] = budget.delta
    own = {"radius": 1.0, "categories": max(2, budget.dimension)}
    own |= {"kept": max(1, budget.dimension // 8), **wishes}
    given |= {name: value for name, value in own.items() if name in fields}
    refusals: list[str] = []
    for dimension in dict.fromkeys((budget.dimension, None, 1)):
        try:
            made = cls.model_validate({**given, "dimension": dimension}).calibrated(1)
            made.bits, made.worst_mse()
            return made
        except ValidationError as error:
            refusals.append(describe(error, fields).removeprefix("scenario."))
        except InputError as error:
            refusals.append(str(error))
    # That it takes another dimension is not why, if it was refused with that one too.
    raise InputError(next((each for each in refusals if "dimension" not in each), refusals[0]))
