"""The small sections of a scenario file."""

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from raydp_sim.mechanisms.leveled import check_falling
from raydp_sim.metrics.sinks import SINKS
from raydp_sim.metrics.sinks.base import Sink
from raydp_sim.model import Model
from raydp_sim.registry import piece
from raydp_sim.stream.levels import Levels, Promoting


class Section(Model):
    """A part of the file."""


class Shuffle(Section):
    """The shuffler of the shuffle model.

    Fields:
        shufflers: actors that share the shuffling; the result does not depend on it.
        min_batch: a batch with fewer clients is never released. 1; with a `mechanism.target`, whose
            noise is chosen for batches of this size, half of the batch that is expected, or six
            standard deviations below it if that is less. Tasks that say themselves how few will do,
            as bandits do, take its place.
        output: what readers are handed: every message, in a random order (`permuted`), or how often
            each symbol came (`counts`), which says no more and costs less; for messages of a finite
            alphabet, and vectors of bits, of which it is the sum.
    """

    shufflers: Annotated[int, Field(ge=1, le=64)] = 1
    min_batch: Annotated[int, Field(ge=1)] = 1
    output: Literal["permuted", "counts"] = "permuted"


class Budget(Section):
    """What the whole run may cost one client.

    Fields:
        epsilon: of everything the client takes part in.
        delta: that goes with it; 0 counts pure losses only.
    """

    epsilon: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.0


class Promotion(Section):
    """One analyst is let in on more, in the middle of a run.

    Fields:
        analyst: its number, which is that of its level, counted from 1; the last level is public
            and can be told nothing.
        to: the level that it reads at from then on, a smaller number.
        release: with which release, counted from 0 and at least 1. Clients that are in its batch
            send one more key for each of their earlier reports; those of others stay as they are.
    """

    analyst: Annotated[int, Field(ge=2)]
    to: Annotated[int, Field(ge=1)]
    release: Annotated[int, Field(ge=1)]


class Privacy(Section):
    """How privacy is reported, and what it may cost a client.

    Fields:
        delta: the largest failure probability that the whole run may end with; shuffled releases
            are accounted at it.
        honest_fraction: share of every batch that does not collude; only those hide a client.
        bound: which bound to report; `best`, the smallest one that is proved, is the only
            choice so far.
        guarantee: `required`, or `none` to say in so many words that a run claims no privacy:
            then, and only then, a mechanism without a guarantee may be used, epsilon is infinite
            everywhere, and nothing that has a guarantee may be mixed with it.
        budget: `{epsilon, delta}` of every client: who cannot afford the next release, should its
            batch be the smallest that is released, stays home; none unless given.
        levels: epsilon of every level of privacy at which one stream of reports is read, falling:
            analyst 1 reads at the first, the public at the last. The first may be infinite. Who
            has a level above the last holds keys.
        key_path: which way keys take: `shuffler`, sealed beside the reports, wherever there is
            one, or `direct`, straight from each client to the analyst, who then learns who sent
            what and gains nothing from the shuffler.
        promotions: of analysts to less private levels, at most one of each.
    """

    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    honest_fraction: Annotated[float, Field(gt=0, le=1)] = 1.0
    bound: Literal["best"] = "best"
    guarantee: Literal["required", "none"] = "required"
    budget: Budget | None = None
    levels: (
        Annotated[
            tuple[Annotated[float, Field(allow_inf_nan=True)], ...],
            Field(min_length=1, max_length=64),
        ]
        | None
    ) = None
    key_path: Literal["shuffler", "direct"] | None = None
    promotions: tuple[Promotion, ...] = ()

    @field_validator("levels", mode="after")
    @classmethod
    def _falling(cls, levels: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if levels is not None:
            check_falling(levels, "it")
            if levels[-1] == float("inf"):
                raise ValueError("its last level is public and must be finite")
        return levels

    @model_validator(mode="after")
    def _promoted_once(self) -> "Privacy":
        if self.levels is None:
            given = [name for name in ("key_path", "promotions") if getattr(self, name)]
            if given:
                raise ValueError(f"{given[0]} is for analysts with keys; give levels, or drop it")
            return self
        known, analysts = len(self.levels) - 1, [each.analyst for each in self.promotions]
        for each in self.promotions:
            if each.analyst > known:
                raise ValueError(
                    f"promotions name analyst {each.analyst}, but those with keys are 1 to {known}"
                )
            if each.to >= each.analyst:
                raise ValueError(
                    f"promotions take analyst {each.analyst} to level {each.to}; it must be smaller"
                )
        if len(set(analysts)) < len(analysts):
            raise ValueError("promotions name an analyst twice; one promotion of each is enough")
        return self

    def readers(self, shuffled: bool) -> Levels | None:
        """Return who reads at which level; None where all readers are alike.

        Args:
            shuffled: whether there is a shuffler.
        """
        if self.levels is None:
            return None
        plans = (Promoting(each.analyst, each.to, each.release) for each in self.promotions)
        direct = not shuffled or self.key_path == "direct"
        return Levels(self.levels, direct, tuple(sorted(plans, key=lambda each: each.analyst)))

    @model_validator(mode="after")
    def _budget_within_delta(self) -> "Privacy":
        if self.budget is not None and self.budget.delta > self.delta:
            raise ValueError(
                f"budget.delta is {self.budget.delta:g}; it must be at most privacy.delta, which "
                f"is {self.delta:g}"
            )
        return self


class Placement(Section):
    """Where the run takes place; nothing here changes a result.

    Fields:
        backend: `ray`, or `inline` for one process without Ray.
        clients_per_actor: clients in one actor; `auto` makes one actor per CPU of the
            cluster, 1 makes each client a process of its own.
        checkpoint_seconds: least wall-clock time between two checkpoints; 0 makes one per release.
        span: releases that one call to each actor carries, where no release depends on the one
            before. `auto` begins with 1 and has as many as take about half a second and
            64 MiB of reports; with checkpoint_seconds 0 it stays at 1. A given number is used as
            it is, and checkpoints are made between spans.
        start_timeout: seconds that Ray may take to start.
        recoveries: how often in a row, with no checkpoint in between, a run whose shuffler,
            aggregator, ledger or metrics actor died is taken up from its last checkpoint by itself;
            0 stops it at once (exit code 3), to be resumed by hand.
        servers: with `ray`, where the shuffler, readers, ledger and metrics run: `actors` of
            their own, or the `driver`, which saves short rounds most of their Ray calls.
    """

    backend: Literal["ray", "inline"] = "ray"
    clients_per_actor: Annotated[int, Field(ge=1)] | Literal["auto"] = "auto"
    checkpoint_seconds: Annotated[float, Field(ge=0)] = 1.0
    span: Annotated[int, Field(ge=1, le=1024)] | Literal["auto"] = "auto"
    start_timeout: Annotated[float, Field(gt=0)] = 90.0
    recoveries: Annotated[int, Field(ge=0)] = 3
    servers: Literal["actors", "driver"] = "actors"


def host_and_port(text: str) -> tuple[str, int]:
    """Return the two parts of an address to listen at.

    Raises:
        ValueError: says what it must be.

    Example:
        >>> host_and_port("127.0.0.1:8815")
        ('127.0.0.1', 8815)
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError("host:port, such as 127.0.0.1:8815")
    return host, int(port)


class Metrics(Section):
    """What analysts see while it happens; nothing here changes a result.

    Fields:
        serve: whether streams are also served live, over Arrow Flight: `true` at a free port of
            this machine only, or `host:port` to listen at.
        tokens: file of the bearer tokens that are accepted: one that opens everything, or a YAML
            list of `{token, scopes, reader}`. Without it the environment's `RAYDP_SIM_TOKEN` opens
            everything; without that, tokens are made and printed once.
        certificate: PEM file of the server's certificate, for TLS; none unless given.
        key: PEM file of the certificate's private key.
        page: whether what is served is also shown on a web page, if the extra `serve` is installed:
            `true` at a free port of the same host, or `host:port` to listen at.
        sinks: where rows are also written to; none unless given.
        ray_metrics: whether the numbers of the last release are also metrics of Ray.
    """

    serve: bool | str = False
    tokens: str | None = None
    certificate: str | None = None
    key: str | None = None
    page: bool | str = True
    sinks: tuple[Annotated[Sink, *piece(SINKS)], ...] = ()
    ray_metrics: bool = False

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port to listen at; port 0 is any that is free. None: nothing is served."""
        if self.serve is False:
            return None
        return ("127.0.0.1", 0) if self.serve is True else host_and_port(self.serve)

    @property
    def page_at(self) -> tuple[str, int] | None:
        """Host and port of the page; None: there is none."""
        if self.address is None or self.page is False:
            return None
        return (self.address[0], 0) if self.page is True else host_and_port(self.page)

    @field_validator("serve", "page")
    @classmethod
    def _host_and_port(cls, value: bool | str) -> bool | str:
        if isinstance(value, str):
            try:
                host_and_port(value)
            except ValueError as error:
                raise ValueError(f"it must be true, false, or {error}") from None
        return value

    @model_validator(mode="after")
    def _certificate_with_key(self) -> "Metrics":
        if (self.certificate is None) != (self.key is None):
            raise ValueError("certificate and key go together; give both, or neither")
        return self
