"""Mechanisms that break one promise are caught, by the check that is about it."""

import inspect

import pytest

from raydp_sim.check import check_mechanism
from raydp_sim.mechanisms.base import Mechanism

from . import bad

RATIO = "sampled likelihood ratio"
SEED, PLACE = "the seed decides every draw", "placement changes no report"
BIAS, ERROR = "estimates are unbiased", "estimates err as stated"
MOMENTS = "enumeration gives the value and the error"
# Which checks fail; every other one must not, so that a message points to its cause.
CAUGHT = {
    bad.Response: set(),
    bad.WithLaws: set(),
    bad.Biased: set(),
    bad.Unprotected: set(),
    bad.FlipsTooRarely: {RATIO},
    bad.FlipsTooRarelyAndSaysSo: {
        RATIO,
        "exact likelihood ratio",
        "each message loses what is stated",
    },
    bad.FlipsTooRarelyAndLies: {RATIO, "reports follow the laws", BIAS, ERROR},
    bad.UnrandomizedBit: {RATIO, SEED, ERROR},
    bad.Identity: {RATIO, SEED},
    bad.AlmostIdentity: {RATIO},
    bad.SometimesIdentity: {RATIO},
    bad.HalfTheNoise: {RATIO},
    bad.HalfTheCentralNoise: {RATIO, ERROR},
    bad.SharesInTheOpen: {RATIO},
    bad.WrongDecode: {BIAS, ERROR},
    bad.WrongDecodeEnumerated: {BIAS, ERROR, MOMENTS},
    bad.WrongError: {ERROR, MOMENTS},
    bad.BlockDependent: {PLACE},
    bad.FixedSeed: {SEED, ERROR},
    bad.LossyWire: {RATIO, SEED, "the wire is exact"},
    bad.TakesAnything: {
        RATIO,
        SEED,
        "values outside are refused, or clipped",
        "what is no number is refused",
    },
    bad.AlwaysClamps: {"values outside are refused, or clipped"},
    bad.OrderMatters: {"sums in any order", ERROR},
    bad.WritesIntoArguments: {"arguments stay as they were", PLACE},
    bad.MoreThanAsked: {
        "the event fits the guarantee",
        "a target is shared between releases",
    },
    bad.MessagesLoseMore: {"each message loses what is stated"},
    bad.Raises: {
        "shapes and types",
        "no clients, no report",
        "arguments stay as they were",
        BIAS,
        ERROR,
    },
}


def cases():
    return [
        pytest.param(cls, parameters, id=f"{cls.__name__}-{number}")
        for cls in CAUGHT
        for number, parameters in enumerate(cls.examples)
    ]


def test_every_bad_class_is_here():
    own = {
        cls
        for _, cls in inspect.getmembers(bad, inspect.isclass)
        if issubclass(cls, Mechanism) and cls.__module__ == bad.__name__
    }
    refused = {bad.NoKind, bad.NoDecode, bad.NoLossAndNoDomain, bad.NoExamples}
    assert own - refused - {bad.OwnGenerator} == set(CAUGHT)


@pytest.mark.parametrize(("cls", "parameters"), cases())
def test_what_is_broken_is_found_and_nothing_else(cls, parameters):
    """False alarms at the fixed seeds: 1e-8 for each statistical check."""
    found = check_mechanism(cls.model_validate(parameters))
    failed = {finding.check: finding.why for finding in found if finding.status == "failed"}
    assert set(failed) == CAUGHT[cls], failed


def why(cls, check, **parameters):
    found = check_mechanism(cls.model_validate({**cls.examples[0], **parameters}))
    return next((finding.status, finding.why) for finding in found if finding.check == check)


def test_the_sentence_says_how_much_is_lost_and_between_which_inputs():
    status, words = why(bad.Identity, RATIO, dimension=1)
    assert status == "failed"
    assert "for (-1) and" in words and "for (1)," in words and "1 is stated" in words


def test_draws_that_no_seed_decides_are_found():
    """Two calls of 4,000 fair draws agree with probability below 1e-300."""
    assert "the same seed gave other reports" in why(bad.OwnGenerator, SEED)[1]


def test_an_error_of_the_class_names_the_method():
    assert why(bad.Raises, "shapes and types") == (
        "failed",
        "`decode` raised RuntimeError: no such luck",
    )


def test_what_the_class_says_of_its_bias_is_repeated():
    status, words = why(bad.Biased, BIAS)
    assert status == "not applicable" and "flips are not taken out" in words


def test_a_loss_that_samples_cannot_refute_is_not_called_passed():
    """Even the identity: no number of samples that fits refutes epsilon 12."""
    status, words = why(bad.Identity, RATIO, epsilon_local=12.0)
    assert status == "not applicable" and "smaller epsilon" in words


def test_rare_noise_is_no_false_alarm():
    """At epsilon 24 a bit is flipped once in 2.6e10 times, which no sample shows."""
    for cls in (bad.Response, bad.WithLaws):
        for epsilon in (8.0, 12.0, 24.0):
            found = check_mechanism(cls(epsilon_local=epsilon))
            assert not [finding for finding in found if finding.status == "failed"]


def test_optional_methods_may_be_missing():
    class Bare(bad.Identity):
        mse = Mechanism.mse
        worst_mse = Mechanism.worst_mse

    found = {f.check: f for f in check_mechanism(Bare(dimension=2, epsilon_local=1.0))}
    assert found[ERROR].status == "not applicable"
    assert found[ERROR].why == "Bare has no method `worst_mse`"
    assert found["no input errs more than the worst"].why == "Bare has no method `mse`"
    assert found[BIAS].status == "passed" and found[RATIO].status == "failed"
