"""What a figure's file says: panels of curves, and what the text claims about them."""

from typing import Annotated, Any, Literal

from pydantic import Field

from raydp_sim.model import Model

_Positive = Annotated[float, Field(gt=0)]
_Count = Annotated[int, Field(ge=1)]
Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=100)]


class Fixed(Model):
    """The parameters that a panel holds fixed; what it sweeps is left out.

    Fields:
        epsilon0: local loss of one message.
        clients: how many there are.
        sampled: of them, chosen uniformly for each round; without it, `rate` or `joining`
            everyone takes part.
        rate: sampled as a share of the clients.
        joining: instead of either, the probability of each client's own coin.
        rounds: of the run; 1 for a single shuffle.
        delta: of the run.
        alpha: order of the divergence.
        epsilon: of the release that errors are meant for.
        dimension: of the vectors.
        coordinates: that a report samples per level.
        levels: binary levels of a report.
        samples: that each client holds.
        actions: of a bandit, drawn uniformly on the sphere as theta* is.
        categories: that clients hold one of.
        randomness: most bits of randomness of a report.
        kept: numbers that a sketch has of a vector.
        groups: of sketching clients, sizes of those who hold one vector together; all other
            vectors are at right angles. All have length 1.
        alike: instead, size of the one such group.
        correlation: instead, R of vectors of which all pairs have the same product, R/(n - 1).
        voters: whose majority is released.
        vote_epsilon, vote_delta: of one vote.
        multiple: m, epsilon of the majority over that of a vote.
        tally: of the votes.
        asked: votes whose majority costs as much as the release.
        slack: delta that composition takes.
        queries: answered one after the other.
        right: how often a vote is right.
    """

    epsilon0: Annotated[float, Field(ge=0)] | None = None
    clients: _Count | None = None
    sampled: _Count | None = None
    rate: Annotated[float, Field(gt=0, le=1)] | None = None
    joining: Annotated[float, Field(gt=0, le=1)] | None = None
    rounds: _Count | None = None
    delta: Annotated[float, Field(gt=0, lt=1)] | None = None
    alpha: Annotated[float, Field(gt=1)] | None = None
    epsilon: _Positive | None = None
    dimension: _Count | None = None
    coordinates: _Count | None = None
    levels: _Count | None = None
    samples: _Count | None = None
    actions: _Count | None = None
    categories: Annotated[int, Field(ge=2, le=1 << 20)] | None = None
    randomness: _Positive | None = None
    kept: _Count | None = None
    groups: tuple[_Count, ...] | None = None
    alike: _Count | None = None
    correlation: Annotated[float, Field(ge=0)] | None = None
    voters: _Count | None = None
    vote_epsilon: _Positive | None = None
    vote_delta: Annotated[float, Field(ge=0, lt=1)] | None = None
    multiple: Annotated[float, Field(ge=1)] | None = None
    tally: _Count | None = None
    asked: _Count | None = None
    slack: Annotated[float, Field(gt=0, lt=1)] | None = None
    queries: _Count | None = None
    right: Annotated[float, Field(ge=0, le=1)] | None = None


class Bandit(Model):
    """A linear bandit that is played in batches, as in 000 Algorithms 6.3.1, 6.3.2 and 6.4.1.

    Fields:
        model: who adds noise: nobody (`none`), the learner (`central`), each client (`local`), or
            each client behind a shuffler (`shuffle`).
        design: what a batch plays: a `core-set`, or all active actions alike (`uniform`).
        radius: of confidence, as in the `paper` or `corrected`.
        amplification: how a shuffled batch's local loss is found: by `clones` (Feldman et al. 2021,
            numerically) or by the `closed` form that the text inverts.
        sensitivity: of a reward in [-1, 1], which is 2; the text's 1 has twice the loss it states.
    """

    model: Literal["none", "central", "local", "shuffle"]
    design: Literal["core-set", "uniform"] = "core-set"
    radius: Literal["paper", "corrected"] = "paper"
    amplification: Literal["clones", "closed"] = "clones"
    sensitivity: _Positive = 2.0


class Frequencies(Model):
    """A distribution, shares like 0.8^x, estimated by 'hadamard-bit' with columns i modulo K (000).

    Fields:
        randomness: most bits of randomness of a report; by default as many as it takes.
        repair: how the estimate is made a distribution: not at all (`raw`), by setting what is
            negative to 0 and scaling (`clip`), or as the nearest one (`simplex`).
        value: `simulated`, or `predicted` from the exact variance.
    """

    randomness: _Positive | None = None
    repair: Literal["raw", "clip", "simplex"] = "clip"
    value: Literal["simulated", "predicted"] = "simulated"


class Sketched(Model):
    """A mean of sketched vectors (004, chapter 2): what its error is.

    Fields:
        encoder: what clients send, a mechanism's kind.
        similarity: how alike the decoder takes them to be; `opt` knows the true R.
        value: `exact`, by a closed form; `simulated`; what `simulated` is below the closed form
            of `rand-k` at the same similarity, in its standard errors (`gain`); or, of `rand-proj`
            and clients that are all alike, the error if all rows are independent (`full-rank`).
    """

    encoder: Literal["rand-k", "rand-proj"]
    similarity: Literal["one", "max", "opt", "avg"] = "one"
    value: Literal["exact", "simulated", "gain", "full-rank"] = "exact"


class Problem(Model):
    """What shuffled gradients are to minimise, and how they are tried (004, section 4.7).

    Fields:
        data: a data set with private and public records, by kind.
        loss: of a record: `mean`, `ridge` or `logistic`.
        regulariser: `ball`, `l2` or `l1`, applied once an epoch.
        weight: its radius or factor.
        gradient_clip: of every gradient; those of `public-only` are left as they are.
        share: of what is private: of epochs, or of the steps of an epoch.
        order: of private records: `ig` as given, `so` shuffled once, `rr` anew in every epoch.
        accountant: `pabi`, or `secret-order`, which trusts that nobody knows the order.
        steps: step sizes that are tried; the best by mean last loss is shown, which is not
            accounted for.
        tuning: runs that it is chosen by.
        excess: whether values are above the least, or the objective itself.
    """

    data: dict[str, Any]
    loss: Literal["mean", "ridge", "logistic"]
    regulariser: Literal["ball", "l2", "l1"]
    weight: _Positive
    gradient_clip: _Positive = 10.0
    share: Annotated[float, Field(gt=0, le=1)] = 0.5
    order: Literal["ig", "so", "rr"] = "rr"
    accountant: Literal["pabi", "secret-order"] = "pabi"
    steps: Annotated[tuple[_Positive, ...], Field(min_length=1)]
    tuning: Annotated[int, Field(ge=1, le=1000)] = 3
    excess: bool = False


class Curve(Model):
    """How a curve is computed: from a mechanism, a formula, other curves, or a bandit's runs.

    Fields:
        mechanism: its kind and parameters; what the panel sweeps or fixes is filled in where they
            leave it out.
        formula: instead, a closed form by name.
        least: instead, the least of these curves at every value.
        bandit: instead, the regret of one, played on instances that all curves have in common.
        frequencies: instead, the error of an estimated distribution.
        sketched: instead, the error of a mean of sketched vectors.
        gradients: instead, an algorithm of shuffled gradients, played on the panel's problem.
        model: `local`, a report has the loss epsilon0; `shuffle`, the release has (epsilon, delta).
        accountant: which finds the local loss behind the shuffler: `thm531` (000 Theorem 5.3.1),
            `clones` (Feldman et al. 2021, divergences), `sms` (the same pair, one message, delta
            itself), `best`; or a closed form of the seeds with its constant, `closed-432`,
            `closed-6912`, and as printed, which does not meet the target, `printed-144`,
            `printed-2304`.
        charge: `data`, the messages that depend on the data; `all` of them, as the seeds count.
        recommended: whether coordinates and levels are those the seeds recommend behind a shuffler.
        value: `worst` case of the error; `simulated` error on drawn inputs; its exact
            `expectation` on the same inputs; their difference in standard errors (`deviation`);
            or the squared bias by clipping alone, if all clients hold one vector
            (`clipping-equal`) or each its own (`clipping-spread`). Of `bits`, `worst` are those
            that are sent and `entropy` those of randomness that are drawn.
        repetitions: of what is simulated or drawn; for a bandit, instances.
    """

    mechanism: dict[str, Any] | None = None
    formula: str | None = None
    least: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    bandit: Bandit | None = None
    frequencies: Frequencies | None = None
    sketched: Sketched | None = None
    gradients: (
        Literal["plain", "private", "priv-pub", "pub-priv", "interleaved", "public-only"] | None
    ) = None
    model: Literal["local", "shuffle"] = "local"
    accountant: Literal[
        "best",
        "thm531",
        "clones",
        "sms",
        "closed-432",
        "closed-6912",
        "printed-144",
        "printed-2304",
    ] = "best"
    charge: Literal["data", "all"] = "data"
    recommended: bool = False
    value: Literal[
        "worst",
        "simulated",
        "expectation",
        "deviation",
        "clipping-equal",
        "clipping-spread",
        "entropy",
    ] = "worst"
    repetitions: Annotated[int, Field(ge=2, le=100_000)] = 100


class Panel(Model):
    """One set of axes.

    Fields:
        title: what is fixed, in words.
        quantity: `rdp`, the divergence of one event; `epsilon` of a whole run; `mse`, the mean
            squared error of a mean; `bits` of a client's report; `regret` of a bandit; `l1`, the
            error of an estimated distribution; `likelihood` of a bit; `information` of a bit about
            a sign; `sketched`, the mean squared error of a mean of sketched vectors; `risk`, the
            objective of shuffled gradients after an epoch; of private majorities `gamma`, the noise
            function and what it gains, `error`, `accuracy` of labels, and `guarantee`, its
            parameters.
        sweep: what the x axis shows.
        values: where the curves are computed.
        x_scale: of the x axis.
        y_scale: of the y axis.
        fixed: every other parameter.
        problem: what shuffled gradients minimise, for `risk`.
        curves: bounds by name for `rdp` and `epsilon`, else names of `figure.curves`.
    """

    title: str = ""
    quantity: Literal[
        "rdp",
        "epsilon",
        "mse",
        "bits",
        "regret",
        "l1",
        "likelihood",
        "information",
        "sketched",
        "gamma",
        "error",
        "accuracy",
        "guarantee",
        "risk",
    ]
    sweep: Literal[
        "alpha",
        "clients",
        "epsilon0",
        "rounds",
        "epsilon",
        "dimension",
        "coordinates",
        "levels",
        "samples",
        "categories",
        "randomness",
        "likelihood",
        "kept",
        "alike",
        "correlation",
        "multiple",
        "tally",
        "asked",
        "queries",
        "right",
        "epochs",
    ]
    values: Annotated[tuple[_Positive, ...], Field(min_length=1, max_length=10_000)]
    x_scale: Literal["log", "linear"] = "log"
    y_scale: Literal["log", "linear"] = "log"
    fixed: Fixed
    problem: Problem | None = None
    curves: Annotated[tuple[str, ...], Field(min_length=1)]


class Figure(Model):
    """What is drawn.

    Fields:
        title: above all panels.
        labels: what the legend calls a curve, by its name.
        curves: of errors, bits and regret, by name; bounds have names already.
        panels: by a short name, which `--set figure.panels.NAME.values=[...]` takes.
    """

    title: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    curves: dict[Word, Curve] = Field(default_factory=dict)
    panels: Annotated[dict[Word, Panel], Field(min_length=1)]


class Claim(Model):
    """A number or comparison that the text prints, and how ours is computed.

    Fields:
        claim: what the text says.
        printed: the number it gives, or the one that its words amount to.
        unit: written after both numbers, such as x for a factor.
        panel: whose parameters are used; for `largest-ratio` all panels if left out.
        compute: `value` of a curve; `ratio` of two; `largest-ratio` of two over the panel's
            values; `exponent`, p of the power x^p that fits a curve over the panel's values best;
            `reached`, the value at the last round that stays within what is printed; `crossover`,
            the first round at which one is below the other; `crossing`, where one passes the
            other between two of the panel's values, both axes in logarithms.
        of: the curve meant.
        over: the curve it is compared with.
        at: where on the x axis; for `reached` and `crossover` the last round to try.
        sense: whether ours has to be `about` the printed number, `below` or `above` it.
        tolerance: how far off `about` may be, as a share of the printed number.
        why: why ours differs, or what to know where it does not.
    """

    claim: Annotated[str, Field(min_length=1)]
    printed: _Positive
    unit: str = ""
    panel: str | None = None
    compute: Literal[
        "value", "ratio", "largest-ratio", "exponent", "reached", "crossover", "crossing"
    ]
    of: str
    over: str | None = None
    at: _Positive | None = None
    sense: Literal["about", "below", "above"] = "about"
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 0.05
    why: Annotated[str, Field(min_length=1)]


class FigureFile(Model):
    """A figure to compute: what it draws at random has a fixed seed.

    Fields:
        name: short name; the run directory is called after it.
        description: what the figure shows, in a sentence.
        figure: what is drawn.
        claims: what the text says about it.
    """

    name: Word
    description: str = ""
    figure: Figure
    claims: tuple[Claim, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the file as resolved: loading it gives this figure again."""
        return self.model_dump(mode="json", exclude_none=True)
