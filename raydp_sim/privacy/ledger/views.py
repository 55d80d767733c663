"""What a guarantee says, and in words what it holds for."""

from dataclasses import dataclass

from raydp_sim.privacy.events import (
    CentralRelease,
    CldpRound,
    EnsembleRelease,
    EpochRelease,
    GaussianRelease,
    GaussianReport,
    LaplaceRelease,
    LocalReport,
    Release,
    SecretEpochRelease,
    SelfSampledGaussianRelease,
    SelfSampledShuffle,
    ShuffledRelease,
    SubsampledGaussian,
    SubsampledGaussianRelease,
    SubsampledGaussianShuffle,
    SubsampledMultiMessage,
    SubsampledShuffle,
)

_SAMPLED = (
    SubsampledShuffle,
    SubsampledMultiMessage,
    SelfSampledShuffle,
    SubsampledGaussianShuffle,
    CldpRound,
    SubsampledGaussian,
    SubsampledGaussianRelease,
    SelfSampledGaussianRelease,
)


@dataclass(frozen=True)
class Guarantee:
    """What the accounting so far proves, for the worst and the median client.

    Attributes:
        epsilon: of the client that was charged most.
        delta: that goes with it; 0 for pure guarantees.
        median: epsilon of the median client.
        bound: name of the bound that gave it.
        assumption: what has to hold for it, and against whom it holds.
    """

    epsilon: float
    delta: float
    median: float
    bound: str
    assumption: str

    @property
    def amplified(self) -> bool:
        """Whether it is of releases as a whole, not the sum of what single reports cost."""
        return self.bound not in (LOCAL[0], CENTRAL[0], NONE[0])


LOCAL = (
    "local-composition",
    "each client's released reports, against anyone who sees them, the server included; "
    "given who took part in which release; nothing is assumed of sampling, of other clients or of "
    "the shuffler's permutation, only that batches it withholds are dropped unseen",
)
# A server that collects the reports itself sees all of them, used or not, and all are charged.
SEEN = (
    "each client's reports, used or not, against anyone who sees them, the server included; given "
    "who reported when; nothing is assumed of sampling or of other clients"
)
CENTRAL = (
    "basic-composition",
    "the released estimates, against anyone who sees them, if the aggregator that holds the "
    "raw values is trusted; neighbours replace one client's data",
)
_TOGETHER = (
    "basic-composition",
    "the shuffled messages of all releases, against a server that sees nothing else, if the "
    "shuffler is honest and so are at least {n} clients of every batch; a report alone is not "
    "protected, not even from the shuffler; neighbours replace one client's data; those who took "
    "part are charged",
)
_LABELS = (
    "the released labels, against anyone who sees them, if the aggregator that holds the votes is "
    "trusted and never shows a tally, and if every vote has the guarantee that is stated for it; "
    "neighbours differ in one record of the data behind the votes (replaced, or added or removed, "
    "as the guarantee of a vote has it), "
)
_ENSEMBLES = {
    ("shared", "fresh"): "which may change every vote; votes are drawn anew for every query",
    ("disjoint", "fresh"): "which one voter used; votes are drawn anew for every query",
    ("shared", "fixed"): "which may change every vote; voters computed once what answers all "
    "queries, and releasing that itself, by all voters, is what is charged",
    ("disjoint", "fixed"): "which one voter used; voters computed once what answers all queries, "
    "and releasing that itself is what is charged",
}
NONE = ("none", "nothing: the mechanism adds no noise, and the run claims no privacy")
BUDGET = "budget"
"""The name of what a filter proves: nobody takes part whose budget that might exceed."""
VIEWS = {
    LocalReport: LOCAL,
    CentralRelease: CENTRAL,
    ShuffledRelease: _TOGETHER,
    EnsembleRelease: ("basic-composition", _LABELS),
}
OPEN_ENDED = "; all planned releases are charged at once, since what was released may end the run"
PARALLEL = "parallel-composition"
"""The name of what holds where clients serve once: the dearest release is what a run costs."""
ONCE = (
    "; every client serves in one release only, so by parallel composition over disjoint clients "
    "the run costs what its dearest release may; whoever stays away is taken to do so without "
    "regard to what it was asked"
)
BY_DATA = (
    "; BUT HERE who stays away is chosen by the clients' data (population.availability): this is "
    "what the releases would cost if it were not, and no guarantee of this run"
)
"""Said where the condition that taking part does not depend on the data does not hold."""
_SHUFFLED = (
    "the shuffled messages of all releases, against a server that sees nothing else, if the "
    "shuffler is honest and so are the clients counted; neighbours replace one client's data; "
)
_COINS = (
    "every eligible client is charged, and each joins by a coin of its own, secret and independent "
    "of the data"
)
_ITERATED = (
    "the iterates at the ends of epochs and so the last one alone, against anyone who sees those "
    "and none inside of an epoch, if the learner that holds the records is trusted; neighbours "
    "replace one client's data; steps do not expand, and the noise of later ones hides earlier "
    "ones (amplification by iteration); "
)
_ORDERS = {
    False: "whoever knows the order of the records learns no more",
    True: "IF NOBODY KNOWS THE ORDER of the records, which the shuffler draws uniformly and tells "
    "the learner alone (secret-order accountant)",
}
_WHO = {
    True: "every eligible client is charged, and each cohort is uniform, secret and independent "
    "of the data",
    False: "those who took part are charged, with the batch that really formed and nothing "
    "gained from sampling; given who took part when, which must not depend on the data",
}


def charged_to_all(release: Release | None) -> bool:
    """Say whether everyone who might have been sampled is charged, not only participants."""
    return isinstance(release, _SAMPLED)


def view_of(release: Release, collector: str = "server") -> str:
    """Say in words what a guarantee of releases like this one holds for.

    Args:
        release: of the run.
        collector: who receives the reports, "shuffler" or "server": what a shuffler withholds is
            not charged, so of reports that it collects nothing is said of those not used.

    Example:
        >>> view_of(GaussianRelease(1.0)).split(",")[0]
        'the released estimates'
    """
    if isinstance(release, EnsembleRelease):
        return _LABELS + _ENSEMBLES[release.records, release.votes]
    central = isinstance(release, GaussianRelease | LaplaceRelease)
    coins = isinstance(release, SelfSampledShuffle | SubsampledGaussian)
    who = _COINS if coins else _WHO[charged_to_all(release)]
    view = CENTRAL[1] if central else _SHUFFLED + who
    if isinstance(release, GaussianReport):
        seen = SEEN if collector == "server" else LOCAL[1]
        view = f"{seen}; neighbours replace one client's data"
    if isinstance(release, SubsampledGaussianRelease | SelfSampledGaussianRelease):
        coins = isinstance(release, SelfSampledGaussianRelease)
        view = f"{CENTRAL[1]}; {_COINS if coins else _WHO[True]}"
    if isinstance(release, EpochRelease | SecretEpochRelease):
        view = _ITERATED + _ORDERS[isinstance(release, SecretEpochRelease)]
    if isinstance(release, SubsampledGaussian):
        # Its neighbours are not those of all other events.
        view = CENTRAL[1].replace("replace one client's data", "add or remove one client")
        view = f"{view}; {_COINS}"
    return of_items(view) if release.unit == "item" else view


def of_items(view: str) -> str:
    """Say that neighbours differ in one item only."""
    if view.startswith(_LABELS):
        return view  # says so already
    if "replace one client's data" not in view:
        return f"{view}; neighbours replace one item of one client's data"
    return view.replace("replace one client's data", "replace one item of one client's data")
