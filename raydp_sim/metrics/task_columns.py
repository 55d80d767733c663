"""Streams and columns that bandits, several analysts and sketches have beside the usual ones."""

from raydp_sim.metrics.described import (
    RELEASED,
    SIMULATION_ONLY,
    Column,
    Described,
    real,
    text,
    whole,
    yes_or_no,
)

_READER = text("of the release: public, or an analyst")
_COORDINATE = whole("", "number of the category, from 0")


def _repaired(how: str, words: str) -> dict[str, Column]:
    return {
        f"l1_{how}": real("share", f"l1 error against those who took part, {words}"),
        f"l2_{how}": real("share squared", f"squared l2 error against them, {words}"),
        f"predicted_l1_{how}": real("share", "what it was expected to be; null if not predicted"),
        f"predicted_l2_{how}": real("share squared", "what it was expected to be, or null"),
    }


# Columns of the stream `errors`.
ERRORS = {
    "regret": real("reward", "of the release: what its clients missed by what they were shown"),
    "regret_so_far": real("reward", "of all releases so far"),
    "linear_regret": real("reward", "of the release, in the problem that contexts are reduced to"),
    "linear_regret_so_far": real("reward", "of all releases so far, in that problem"),
    "asked_regret": real("reward", "of clients who were asked for their context, so far"),
    "gap": real("reward", "between the best action and the one recommended"),
    "squared_error": real("data squared", "of the sketched means, averaged over them"),
    "correlation": real("", "R of what clients sent: 0 if orthogonal, n - 1 if all the same"),
    "loss": real("", "of the task, mean over clients, before the release"),
    "disagreement": real("share", "of the labels so far that are not the majority of the votes"),
    "expected_disagreement": real("share", "of them, by the law of the noise given the votes"),
    "accuracy": real("share", "of the labels so far that are right; only if the truth is known"),
    "majority_accuracy": real("share", "of majorities without noise that are right, so far"),
    "divergence": real("nats", "of GNMax's release, at the order that its noise was found at"),
    "data_dependent_divergence": real("nats", "of it given the votes, which must not be released"),
    "objective": real("", "G of the iterate over the private records"),
    "excess_risk": real("", "the same above its least value"),
    "squared_error_public": real("share squared", "of what the public sees, against everyone"),
}

_SEEN = {
    "coordinate": _COORDINATE,
    "estimate": real("share", "of the category, unbiased"),
    "standard_error": real("share", "of the noise, given who took part"),
    "share": real("share", "the estimate, repaired into a distribution as the task says"),
    "heavy": yes_or_no("whether it is listed as a heavy hitter"),
}

TASKS = {
    "labels": Described(
        RELEASED,
        "a question that voters answered",
        {
            "query": whole("", "its number, from 0"),
            "label": whole("", "0 or 1, that was released"),
        },
    ),
    "votes": Described(
        SIMULATION_ONLY,
        "a question that voters answered: what only the trusted aggregator saw",
        {
            "query": whole("", "its number, from 0"),
            "tally": whole("votes", "for 1"),
            "votes": whole("votes", "that came"),
        },
    ),
    "bandit": Described(
        RELEASED,
        "a batch of a bandit; one without reports was withheld",
        {
            "batch": whole("", "of the schedule, from 1"),
            "rounds": whole("clients", "that were shown an action so far"),
            "horizon": whole("clients", "that there are to be shown one"),
            "slots": whole("clients", "that were asked"),
            "reports": whole("reports", "that came"),
            "active_before": whole("actions", "left before the batch"),
            "active": whole("actions", "left after it"),
            "chosen": whole("actions", "that the batch played"),
            "void": yes_or_no("whether too little came to learn from; it is played again"),
            "radius": real("reward", "within which all active actions are known; null if void"),
            "within": real("reward", "radius, plus what an estimated law of contexts adds"),
            "scale": real("reward", "of the Laplace noise"),
            "epsilon0": real("", "of one report; null where clients add no noise"),
            "batch_epsilon": real("", "of the batch that formed"),
            "recommended": whole("", "number of the action, or policy, that is recommended"),
            "estimate": real("reward", "of what is recommended"),
            "certificate": real("reward", "no larger is the regret of the whole run"),
            "certificate_so_far": real("reward", "no larger is the regret so far"),
            "confidence": real("", "with which the certificates hold"),
            "protects": text("of the clients, from whom"),
        },
    ),
    "contexts": Described(
        RELEASED,
        "a context whose share is estimated",
        {
            "context": whole("", "its number, from 0"),
            "share": real("share", "of the clients, estimated"),
            "off": real("share", "l1 distance from the truth at most, with the run's confidence"),
        },
    ),
    "decoding": Described(
        RELEASED,
        "a release of sketches that were decoded together",
        {
            "similarity_slope": real("", "s of T(m) = 1 + s (m - 1): 0 sums, 1 averages"),
            "normaliser": real("", "beta, which makes the estimate unbiased"),
            "normaliser_error": real("", "its standard error; 0 where it is exact"),
        },
    ),
    "epochs": Described(
        RELEASED,
        "an epoch of shuffled gradients",
        {
            "epoch": whole("", "its number, from 1"),
            "private_steps": whole("steps", "along private records"),
            "public_steps": whole("steps", "along public records, after them"),
            "sigma": real("", "standard deviation of the noise of a step; 0 if there is none"),
            "step_size": real("", "eta"),
            "shown": yes_or_no("whether the iterate is released"),
        },
    ),
    "epoch-accountants": Described(
        RELEASED,
        "an accountant of a run of shuffled gradients, at its end",
        {
            "accountant": text("its name"),
            "epsilon": real("", "at privacy.delta, converted as 004 does"),
            "assumes": text("what it holds for"),
            "charged": yes_or_no("whether it is the one that the ledger charges by"),
        },
    ),
    "public": Described(RELEASED, "a category as the public sees it", _SEEN),
    "analyst": Described(
        RELEASED,
        "a category as that analyst sees it; each has its own: `analyst-1`, ...",
        _SEEN,
    ),
    "keys": Described(
        RELEASED,
        "a reader, of a release: the ledger of keys",
        {
            "reader": _READER,
            "reports": whole("reports", "that it read"),
            "drawn": real("bits", "of entropy that clients drew for all keys"),
            "delivered": whole("bits", "of keys that it was handed"),
            "promoted": whole("bits", "of keys for reports of earlier releases"),
            "missing": whole("reports", "of earlier releases whose clients were absent then"),
        },
    ),
    "views": Described(
        SIMULATION_ONLY,
        "a reader, of a release",
        {
            "reader": _READER,
            "level": whole("", "of privacy, from 1; the last is public"),
            "epsilon": real("", "of one report at that level"),
            "reports": whole("reports", "that it read"),
            **_repaired("raw", "of the estimate"),
            **_repaired("clip", "clipped to [0, 1] and normalised"),
            **_repaired("simplex", "projected on the simplex"),
            "threshold": real("share", "from which a category is listed as heavy"),
            "hitters": whole("categories", "that are listed"),
            "precision": real("share", "of those listed that are heavy"),
            "recall": real("share", "of the heavy ones that are listed"),
            "recovered": yes_or_no("whether every record was recovered; null if none can be"),
        },
    ),
    "shares": Described(
        SIMULATION_ONLY,
        "a category",
        {
            "coordinate": _COORDINATE,
            "population": real("share", "among all clients"),
            "cohort": real("share", "among those who took part"),
        },
    ),
    "refined": Described(
        SIMULATION_ONLY,
        "an earlier release that a promotion opened further",
        {
            "reader": _READER,
            "of": whole("", "number of the earlier release"),
            "promoted": whole("reports", "that were opened further"),
            "missing": whole("reports", "whose clients were absent"),
            "l1_before": real("share", "l1 error before the promotion, against everyone"),
            "l2_before": real("share squared", "squared l2 error before it"),
            "l1_after": real("share", "l1 error after it"),
            "l2_after": real("share squared", "squared l2 error after it"),
        },
    ),
    "reopened": Described(
        SIMULATION_ONLY,
        "a category of an earlier release that a promotion opened further, for several readers",
        {
            "reader": _READER,
            "of": whole("", "number of the earlier release"),
            "coordinate": _COORDINATE,
            "before": real("share", "estimate before the promotion"),
            "after": real("share", "estimate after it"),
        },
    ),
}
