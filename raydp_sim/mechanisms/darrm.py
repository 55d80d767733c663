"""The majority of votes that are private themselves, released by DaRRM."""

from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from raydp_sim.errors import InputError, bad_field
from raydp_sim.mechanisms.ballot import Ballot
from raydp_sim.mechanisms.base import Floats, Mechanism, Positive
from raydp_sim.mechanisms.ensembles.choice import Noise, chosen
from raydp_sim.mechanisms.ensembles.error import says_one
from raydp_sim.mechanisms.ensembles.worst_cases import Ensemble
from raydp_sim.privacy.events import EnsembleRelease

# The multiple is a quotient of two given numbers: 0.3 / 0.1 is 3 but for rounding.
_ROUNDING = 1e-9


class Darrm(Ballot):
    """Tell the majority of K votes with a probability that depends on the tally, else a fair coin.

    Jiang 2025 (004), Algorithm 1. Each vote is (vote_epsilon, vote_delta)-DP for the data behind
    it; what is released is (epsilon, delta)-DP for one record, which may change every vote. The
    noise function is held against every worst case of the votes before it is used. Nothing here
    protects a vote by itself: that is what the voter's own mechanism does.

    Fields:
        vote_epsilon: of one vote, by the voter's own mechanism.
        vote_delta: of one vote.
        epsilon: guarantee of one release, from vote_epsilon to K vote_epsilon. Exactly one of this
            and `target`.
        delta: of one release, at least vote_delta; 0 unless given.
        noise: `monotone` (default), the best function that grows away from a tie; `full`, the best
            of all symmetric ones (up to 11 voters with a vote_delta, about 101 without);
            `subsampling`, the majority of epsilon/vote_epsilon votes; `double-subsampling`, of
            nearly twice as many, for votes without a delta; `constant`; or `given`.
        gamma: for `given`: K + 1 numbers in [0, 1], one per tally, symmetric.
        prior: mean of the probability that a vote is right, that the best functions are best for.
        records: `shared`, a record may be behind every vote; `disjoint`, behind one voter's only.
            Then the release is post-processing of one private vote and costs no more than that.
        votes: `fresh`, voters run their mechanism anew for every query; `fixed`, they ran it once
            and answer all queries by what came out, such as a model. Guarantees of single queries
            do not add up then, for they share that outcome; what is charged, with the first query,
            is releasing all outcomes: K of them, or one if records are disjoint.

    Example:
        >>> Darrm(clients=11, vote_epsilon=0.1, epsilon=0.3).function.round(4)[6:].tolist()
        [0.7078, 0.7078, 0.9266, 1.0, 1.0, 1.0]
    """

    kind: ClassVar[str] = "darrm"
    guarantee: ClassVar[Literal["pure", "approximate", "shuffled-only"]] = "approximate"
    epsilon_field: ClassVar[str] = "epsilon"
    delta_field: ClassVar[str | None] = "delta"
    source: ClassVar[str] = "Jiang 2025, Algorithm 1"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {
            "clients": 21,
            "vote_epsilon": 0.1,
            "vote_delta": 1e-8,
            "epsilon": 0.3,
            "delta": 3e-8,
        },
        {
            "clients": 21,
            "vote_epsilon": 0.5,
            "vote_delta": 1e-8,
            "epsilon": 1.0,
            "delta": 2e-8,
            "noise": "subsampling",
        },
    )

    vote_epsilon: Positive
    vote_delta: Annotated[float, Field(ge=0, lt=1)] = 0.0
    epsilon: Positive | None = None
    delta: Annotated[float, Field(ge=0, lt=1)] | None = None
    noise: Noise = "monotone"
    gamma: tuple[float, ...] | None = None
    prior: Annotated[float, Field(gt=0.5, le=1)] = 0.75
    records: Literal["shared", "disjoint"] = "shared"
    votes: Literal["fresh", "fixed"] = "fresh"

    @model_validator(mode="after")
    def _private(self) -> "Darrm":
        if self.clients is not None and self.target is None:
            try:
                self.function  # noqa: B018 - what is not private is refused here
            except InputError as error:
                raise ValueError(_named(str(error))) from None
        return self

    def check_guarantee(self) -> None:
        """Refuse more or fewer guarantees than one."""
        if self.epsilon_local is not None:
            raise ValueError(f"'{self.kind}' gives no local guarantee; give epsilon instead")
        if (self.epsilon is None) == (self.target is None):
            raise ValueError("give exactly one of epsilon and target: {epsilon, delta}")
        if self.delta is not None and self.target is not None:
            raise ValueError("give delta with epsilon, and not with target")

    @property
    def ensemble(self) -> Ensemble:
        """The votes, and what shall be guaranteed."""
        multiple = self.need_epsilon() / self.vote_epsilon
        if abs(multiple - round(multiple)) <= _ROUNDING * multiple:
            multiple = float(round(multiple))
        return Ensemble(
            self.voters, self.vote_epsilon, self.vote_delta, multiple, self.need_delta()
        )

    @property
    def function(self) -> Floats:
        """Gamma by tally, held against every worst case."""
        return _found(self.ensemble, self.noise, self.gamma, self.prior)

    def law(self) -> Floats:
        """Return Pr[1 | tally]."""
        return says_one(self.function)

    def need_delta(self) -> float:
        """Return the delta of a release."""
        return self.delta or 0.0

    def event(self) -> EnsembleRelease:
        """Return what the release costs a record; with fixed votes, all releases together."""
        epsilon, delta = self.need_epsilon(), self.need_delta()
        if self.votes == "fixed":
            # By basic composition of what the voters computed.
            epsilon, delta = self.voters * self.vote_epsilon, self.voters * self.vote_delta
        if self.records == "disjoint":
            epsilon, delta = self.vote_epsilon, self.vote_delta
        return EnsembleRelease(epsilon, min(delta, 1.0), self.records, self.votes)

    def release(self) -> EnsembleRelease:
        """Return the same: no more is known of it than (epsilon, delta)."""
        return self.event()

    def calibrated(self, releases: int) -> Mechanism:
        """Share the target out; refuse one that fixed votes exceed however it is shared out."""
        made = super().calibrated(releases)
        if self.target is not None and self.votes == "fixed" and isinstance(made, Darrm):
            spent = made.event()
            if spent.epsilon > self.target.epsilon or spent.delta > self.target.delta:
                remedy = (
                    f"fixed votes cost ({spent.epsilon:g}, {spent.delta:g}) whatever is released "
                    "of them; raise it, or lower vote_epsilon and vote_delta"
                )
                raise bad_field("mechanism.target.epsilon", self.target.epsilon, remedy)
        return made

    def losses(self) -> None:
        """State none: nothing is shuffled."""
        return None

    def answered(self) -> "Darrm":
        """Return the mechanism of queries after the first, where votes are fixed."""
        return _Answered.model_validate(self.model_dump()) if self.votes == "fixed" else self


class _Answered(Darrm):
    """Further queries of fixed votes: what they are made of was charged with the first."""

    def event(self) -> EnsembleRelease:
        """Return nothing more."""
        return EnsembleRelease(0.0, 0.0, self.records, self.votes)


@lru_cache(maxsize=32)
def _found(
    ensemble: Ensemble, noise: Noise, gamma: tuple[float, ...] | None, prior: float
) -> Floats:
    """Solve a program once in a process, whoever asks."""
    return chosen(ensemble, noise, gamma, prior)


def _named(message: str) -> str:
    """Say what the scenario calls the parameters of an ensemble."""
    for ours, theirs in (
        ("voters is", "clients is"),
        ("failure is", "vote_delta is"),
        ("multiple is", "epsilon / vote_epsilon is"),
    ):
        message = message.replace(ours, theirs)
    return message
