"""Tasks that say what their batches were, truly or not."""

from typing import ClassVar

from raydp_sim.privacy import events as ev
from raydp_sim.tasks.base import Ask
from raydp_sim.tasks.mean import Mean


def _sampled_noise(mechanism, *sizes):
    return ev.SubsampledGaussianRelease(mechanism.release().noise_multiplier, *sizes)


def _coin_noise(mechanism, *sizes):
    return ev.SelfSampledGaussianRelease(mechanism.release().noise_multiplier, *sizes)


CLAIMS = {
    "a sampled shuffle": lambda m, f: ev.SubsampledShuffle(m.losses()[0], f.clients, f.reports),
    "a larger cohort": lambda m, f: ev.SubsampledShuffle(m.losses()[0], f.clients, f.reports - 1),
    "more eligible": lambda m, f: ev.SubsampledShuffle(m.losses()[0], 10 * f.clients, f.reports),
    "coins": lambda m, f: ev.SelfSampledShuffle(m.losses()[0], f.clients, 0.5),
    "rarer coins": lambda m, f: ev.SelfSampledShuffle(m.losses()[0], f.clients, 0.25),
    "a larger batch": lambda m, f: ev.Shuffle(m.losses()[0], f.reports + 1),
    "a smaller loss": lambda m, f: ev.Shuffle(m.losses()[0] / 2, f.reports),
    "another law": lambda m, f: ev.Shuffle(m.losses()[0], f.reports, "krr", 7),
    "points": lambda m, f: ev.CldpRound(m.losses()[0], f.clients, 10, f.reports, 1),
    "noise": lambda m, f: ev.GaussianRelease(5.0),
    "less noise than there is": lambda m, f: ev.GaussianRelease(m.release().noise_multiplier / 2),
    "more noise than there is": lambda m, f: ev.GaussianRelease(m.release().noise_multiplier * 2),
    "Laplace noise": lambda m, f: ev.LaplaceRelease(1e-3),
    "Poisson noise": lambda m, f: ev.SubsampledGaussian(m.release().noise_multiplier, 0.5),
    "sampled noise": lambda m, f: _sampled_noise(m, f.clients, f.reports),
    "sampled noise of fewer": lambda m, f: _sampled_noise(m, f.clients, f.reports - 1),
    "sampled noise of points": lambda m, f: _sampled_noise(m, f.clients, f.reports, 2),
    "noise by coins": lambda m, f: _coin_noise(m, f.clients, 0.5),
    "noise by rarer coins": lambda m, f: _coin_noise(m, f.clients, 0.1),
    "a central release": lambda m, f: ev.CentralRelease(1e-3),
    "a report": lambda m, f: ev.LocalReport(m.event().epsilon),
    "a cheap item": lambda m, f: ev.LocalReport(m.event().epsilon / 2, unit="item"),
    "nothing": lambda m, f: None,
}


class Claiming(Mean):
    """Claims what it is told to."""

    kind: ClassVar[str] = "claiming"
    claim: str

    def event(self, setting, ask, formed):
        return CLAIMS[self.claim](ask.mechanism, formed)


class Unsteady(Mean):
    """Charges items in its second release and clients in its first."""

    kind: ClassVar[str] = "unsteady"
    adaptive = True

    def ask(self, setting, state):
        return Ask(setting.mechanism, cohort=100 - int(state["releases"]))

    def event(self, setting, ask, formed):
        unit = "client" if ask.cohort is None or ask.cohort == 100 else "item"
        return ev.Shuffle(ask.mechanism.losses()[0], formed.honest, unit=unit)
