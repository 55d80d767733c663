"""What no privacy event may claim of a batch: more than the engine knows of it."""

from collections.abc import Callable
from typing import Any

from raydp_sim.errors import RunError
from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.privacy.events import (
    Batch,
    CentralRelease,
    CldpRound,
    EnsembleRelease,
    EpochRelease,
    GaussianRelease,
    GaussianReport,
    GaussianShuffle,
    LaplaceRelease,
    LocalReport,
    MultiMessageShuffle,
    Release,
    SecretEpochRelease,
    SelfSampledGaussianRelease,
    SelfSampledShuffle,
    Shuffle,
    SubsampledGaussian,
    SubsampledGaussianRelease,
    SubsampledGaussianShuffle,
    SubsampledMultiMessage,
    SubsampledShuffle,
)
from raydp_sim.tasks.charging import Formed, amplifies

_SEVERAL = "clients send several values, and only items of their data are charged one by one"
_UNIFORM = "its cohort was not uniform and secret"


def check_event(event: Release | None, mechanism: Mechanism, formed: Formed) -> None:
    """Refuse an event that claims more of a batch than is known of it.

    Raises:
        RunError: names the claim; nothing was released.
    """
    wrong = _wrong(event, mechanism, formed)
    if wrong is not None:
        raise RunError(
            f"the task charges {type(event).__name__} for a batch of {formed.reports} reports: "
            f"{wrong}; nothing was released",
            resumable=False,
        )


def _wrong(event: Release | None, mechanism: Mechanism, formed: Formed) -> str | None:
    # Without a guarantee one value costs as much as many: everything.
    private = mechanism.guarantee != "none"
    if private and formed.most > 1 and (event is None or event.unit == "client"):
        return _SEVERAL
    if event is None:
        return None
    check = _CHECKS.get(type(event))
    return "no release is one" if check is None else check(event, mechanism, formed)


def _local(event: LocalReport, mechanism: Mechanism, formed: Formed) -> str | None:
    if event.unit == "client":
        return "a report by itself is charged anyway; return None"
    return _not_less(event, mechanism, LocalReport)


def _central(event: CentralRelease, mechanism: Mechanism, formed: Formed) -> str | None:
    return _trusted(formed) or _not_less(event, mechanism, CentralRelease)


def _ensemble(event: EnsembleRelease, mechanism: Mechanism, formed: Formed) -> str | None:
    known = mechanism.event()
    alike = isinstance(known, EnsembleRelease) and (known.records, known.votes) == (
        event.records,
        event.votes,
    )
    wrong = None if alike else "its votes are not made as stated"
    return _trusted(formed) or wrong or _not_less(event, mechanism, EnsembleRelease)


def _not_less(event: Any, mechanism: Mechanism, kind: type) -> str | None:
    known = mechanism.event()
    if not isinstance(known, kind):
        return f"what is charged is a {type(known).__name__}"
    if event.epsilon >= known.epsilon and event.delta >= known.delta:
        return None
    return f"it costs epsilon {known.epsilon:g} and delta {known.delta:g}, more than stated"


def _trusted(formed: Formed) -> str | None:
    return None if formed.trust.noise_at == "aggregator" else "no trusted aggregator adds noise"


def _gaussian(event: GaussianRelease, mechanism: Mechanism, formed: Formed) -> str | None:
    return _trusted(formed) or _noisy(event.noise_multiplier, mechanism)


def _own_noise(event: GaussianReport, mechanism: Mechanism, formed: Formed) -> str | None:
    known = mechanism.release()
    if not isinstance(known, GaussianReport):
        return "clients do not add normal noise themselves"
    if event.noise_multiplier <= known.noise_multiplier:
        return None
    return f"its noise is {known.noise_multiplier:g} times the sensitivity, less than stated"


def _noisy(stated: float, mechanism: Mechanism) -> str | None:
    known = mechanism.release()
    if not isinstance(known, GaussianRelease):
        return "its noise is not Gaussian"
    if stated <= known.noise_multiplier:
        return None
    return f"its noise is {known.noise_multiplier:g} times the sensitivity, less than stated"


def _laplace(event: LaplaceRelease, mechanism: Mechanism, formed: Formed) -> str | None:
    known = mechanism.release()
    if not isinstance(known, LaplaceRelease):
        return _trusted(formed) or "its noise is not Laplace's"
    less = event.epsilon < known.epsilon
    return f"it costs epsilon {known.epsilon:g}, more than stated" if less else None


def _poisson(event: SubsampledGaussian, mechanism: Mechanism, formed: Formed) -> str | None:
    return (
        "its neighbours add or remove a client, and how many took part is published; charge "
        "SelfSampledGaussianRelease"
    )


def _sampled_noise(
    event: SubsampledGaussianRelease, mechanism: Mechanism, formed: Formed
) -> str | None:
    wrong = _trusted(formed) or _noisy(event.noise_multiplier, mechanism)
    return wrong or _cohort(event.sampled, event.clients, formed) or _own_points(event, formed)


def _self_sampled_noise(
    event: SelfSampledGaussianRelease, mechanism: Mechanism, formed: Formed
) -> str | None:
    wrong = _trusted(formed) or _noisy(event.noise_multiplier, mechanism)
    return wrong or _joined(event, formed) or _own_points(event, formed)


def _own_points(
    event: SubsampledGaussianRelease | SelfSampledGaussianRelease, formed: Formed
) -> str | None:
    """Check what is said of the points that each client sent."""
    if formed.slots is not None:
        return "where there are slots, it is not worked out"
    if not formed.fewest == formed.most == event.sampled_points:
        return f"clients sent {formed.fewest} to {formed.most} values each"
    if event.points > 1 and event.unit == "client":
        return "points are drawn of a client, so what is protected is an item"
    return None if event.points <= formed.items else f"clients hold {formed.items} items each"


def _messages(event: Any, stated: tuple[float, ...], mechanism: Mechanism, formed: Formed) -> Any:
    """Check what every shuffled event says of its messages."""
    if not formed.trust.shuffled:
        return "there is no shuffler"
    if not amplifies(mechanism, formed.trust):
        return "its reports are not amplified by shuffling"
    losses = mechanism.losses()
    if losses is None:
        return "the loss of its messages is not stated one by one"
    if len(stated) != len(losses) or any(a < b for a, b in zip(stated, losses, strict=True)):
        return f"its messages lose {losses}, more than stated"
    name, alphabet = getattr(event, "randomizer", None), getattr(event, "alphabet", None)
    if name is None and alphabet is None:
        return None
    if formed.slots is not None:
        return "where there are slots, its messages follow several laws"
    one = name == mechanism.randomizer() and alphabet in (None, mechanism.alphabet())
    return None if one else "its messages follow another law"


def _shuffle(event: Shuffle, mechanism: Mechanism, formed: Formed) -> str | None:
    return _messages(event, (event.epsilon0,), mechanism, formed) or _hidden(event, formed)


def _multi(event: MultiMessageShuffle, mechanism: Mechanism, formed: Formed) -> str | None:
    return _messages(event, event.losses, mechanism, formed) or _hidden(event, formed)


def _reports(event: Any, mechanism: Mechanism, formed: Formed) -> str | None:
    """Check what events of shuffled normal noise say of their reports."""
    if not formed.trust.shuffled:
        return "there is no shuffler"
    if not mechanism.normal:
        return "its reports are not values with normal noise"
    if formed.slots is not None:
        return "where there are slots, its messages follow several laws"
    noise, dimension = mechanism.noise_multiplier(), mechanism.need_dimension()
    if event.noise_multiplier > noise:
        return f"its noise is {noise:g} times the diameter of the values, less than stated"
    return None if event.dimension >= dimension else f"its vectors have {dimension} dimensions"


def _noisy_batch(event: GaussianShuffle, mechanism: Mechanism, formed: Formed) -> str | None:
    return _reports(event, mechanism, formed) or _hidden(event, formed)


def _noisy_sample(
    event: SubsampledGaussianShuffle, mechanism: Mechanism, formed: Formed
) -> str | None:
    wrong = _reports(event, mechanism, formed) or _once(formed)
    return wrong or _cohort(event.sampled, event.clients, formed)


def _hidden(event: Batch, formed: Formed) -> str | None:
    if event.n <= formed.hiding:
        return None
    return f"only {formed.hiding} values of honest clients are in it"


def _coins(event: SelfSampledShuffle, mechanism: Mechanism, formed: Formed) -> str | None:
    if wrong := _messages(event, (event.epsilon0,), mechanism, formed):
        return str(wrong)
    return _joined(event, formed) or _once(formed)


def _joined(event: SelfSampledShuffle | SelfSampledGaussianRelease, formed: Formed) -> str | None:
    """Check what is said of the coins by which clients joined."""
    if formed.sampling != "coins" or event.probability < formed.probability:
        return "clients did not join by secret coins of that probability"
    return _eligible(event.clients, formed)


def _eligible(clients: int, formed: Formed) -> str | None:
    return None if clients <= formed.clients else f"only {formed.clients} clients were eligible"


def _once(formed: Formed) -> str | None:
    return None if formed.most <= 1 else "it is of one value per client, and some send several"


def _sampled(event: SubsampledShuffle, mechanism: Mechanism, formed: Formed) -> str | None:
    wrong = _messages(event, (event.epsilon0,), mechanism, formed) or _once(formed)
    return wrong or _cohort(event.sampled, event.clients, formed)


def _sampled_multi(
    event: SubsampledMultiMessage, mechanism: Mechanism, formed: Formed
) -> str | None:
    wrong = _messages(event, event.losses, mechanism, formed) or _once(formed)
    return wrong or _cohort(event.sampled, event.clients, formed)


def _cohort(sampled: int, clients: int, formed: Formed) -> str | None:
    if formed.sampling != "uniform":
        return _UNIFORM
    if sampled != formed.reports:
        return f"{formed.reports} clients were sampled"
    return _eligible(clients, formed)


def _points(event: CldpRound, mechanism: Mechanism, formed: Formed) -> str | None:
    wrong = _messages(event, (event.epsilon0,), mechanism, formed)
    if wrong := wrong or _cohort(event.sampled_clients, event.clients, formed):
        return str(wrong)
    if not formed.fewest == formed.most == event.sampled_points:
        return f"clients sent {formed.fewest} to {formed.most} values each"
    return None if event.points <= formed.items else f"clients hold {formed.items} items each"


def _epoch(
    event: EpochRelease | SecretEpochRelease, mechanism: Mechanism, formed: Formed
) -> str | None:
    """Check what is said of an epoch against the noise of its steps and who sent records."""
    if (wrong := _trusted(formed)) is not None:
        return wrong
    known = getattr(mechanism, "epoch", None)
    if known is None:
        return "its noise is not that of an epoch's steps"
    stated = known(formed.reports, event.epochs if isinstance(event, SecretEpochRelease) else None)
    if type(event) is not type(stated):
        return "whether the order is secret is the mechanism's to say"
    if event.noise_multiplier > stated.noise_multiplier:
        return f"its noise is {stated.noise_multiplier:g} times the sensitivity, less than stated"
    fits = event.steps == stated.steps and event.private >= stated.private
    return None if fits else f"it has {stated.steps} steps, {stated.private} of them private"


_CHECKS: dict[type, Callable[[Any, Mechanism, Formed], str | None]] = {
    LocalReport: _local,
    CentralRelease: _central,
    EnsembleRelease: _ensemble,
    GaussianRelease: _gaussian,
    GaussianReport: _own_noise,
    SubsampledGaussian: _poisson,
    SubsampledGaussianRelease: _sampled_noise,
    SelfSampledGaussianRelease: _self_sampled_noise,
    LaplaceRelease: _laplace,
    Shuffle: _shuffle,
    MultiMessageShuffle: _multi,
    SelfSampledShuffle: _coins,
    SubsampledShuffle: _sampled,
    SubsampledMultiMessage: _sampled_multi,
    GaussianShuffle: _noisy_batch,
    SubsampledGaussianShuffle: _noisy_sample,
    CldpRound: _points,
    EpochRelease: _epoch,
    SecretEpochRelease: _epoch,
}
