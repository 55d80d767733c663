"""A calm run, what makes each rule fire on it, and scenarios of every policy."""

from raydp_sim.scenario import Scenario
from raydp_sim.stress.row import Measures, Waste, Withheld
from raydp_sim.stress.settings import Settings
from tests.conftest import scenario

POLICIES = {
    "all": {"kind": "all"},
    "asynchronous": {"kind": "asynchronous", "batch": 20, "every": 60.0},
    "over-selected": {"kind": "over-selected", "sampled": 20},
    "self": {"kind": "self", "probability": 0.5},
    "uniform": {"kind": "uniform", "sampled": 20},
}


def made(policy: str, deadline: float | None = 30.0, **sections) -> Scenario:
    return scenario(participation={**POLICIES[policy], "deadline": deadline}, **sections)


CALM = Measures(
    name="calm",
    policy="asynchronous",
    settings=Settings.of(made("asynchronous")),
    clients=1000,
    batches=40,
    made=40,
    withheld_count=0,
    withheld=None,
    squared_error=0.1,
    running_error=0.003,
    noise=0.0025,
    bias=0.004,
    chance_bias=0.005,
    wanted=100.0,
    batch_p5=100.0,
    batch_median=100.0,
    min_batch=50,
    deadline=1800.0,
    epsilon=2.0,
    planned=6.0,
    gini=0.1,
    never=0.0,
    effective=950.0,
    most_turns=9,
    staleness=0.4,
    stalest=3,
    started=4000,
    waste=Waste(under_way=0.01),
    seconds_per_batch=600.0,
)
SMALL = Withheld(least=20, most=45, first=36_000.0, last=43_200.0, half=40, epsilon=7.5)
WITHHELD = {"made": 37, "withheld_count": 3, "withheld": SMALL}
SPENT = {"budget": 2.0, "exhausted": 0.8, "planned": 2.0}
# What makes each rule fire alone, words that its text must have, and what just does not.
CASES = {
    "ended_early": (
        {"made": 30},
        ["30 of 40 batches", "participation.batch", "participation.patience"],
        {"made": 40},
    ),
    "withheld": (
        WITHHELD,
        [
            "3 of 40 batches were withheld, from hour 10.0 to 12.0",
            "20 to 45 reports came and 50 are needed",
            "participation.deadline",
            "participation.on_short",
            "shuffle.min_batch to 40",
            "from 6 to about 7.5",
        ],
        {"withheld": None},
    ),
    "spent": (
        {"budget": 2.0, "exhausted": 0.3},
        ["30% of the clients", "budget of 2 and stay home. Raise privacy.budget.epsilon, "],
        {"budget": 2.0, "exhausted": 0.04},
    ),
    "short": (
        {"batch_p5": 80.0},
        ["at most 80 of the 100", "deadline closed them", "participation.deadline"],
        {"batch_p5": 90.0},
    ),
    "noisy": (
        {"squared_error": 0.2},
        ["2 times that of calm", "participation.batch", "task.rounds"],
        {"squared_error": 0.12},
    ),
    "biased": (
        {"bias": 0.05, "never": 0.1},
        ["off by 0.05", "10 times what chance explains", "50% of the final error", "10% of the"],
        {"bias": 0.0149},
    ),
    "uneven": (
        {"gini": 0.5, "never": 0.2, "effective": 400.0},
        ["Gini 0.50", "20% never", "400 of 1,000 clients", "participation.every"],
        {"gini": 0.29},
    ),
    "costly": (
        {"epsilon": 4.0, "most_turns": 30},
        ["epsilon 4, and 2 in calm", "30 releases", "there in 9", "privacy.budget"],
        {"epsilon": 2.9},
    ),
    "beyond_plan": ({"planned": 1.9}, ["epsilon 2, planned 1.9"], {"planned": 2.0}),
    "stale": (
        {"stalest": 9},
        ["0.4 releases behind on average and 9 at worst", "participation.staleness_exponent"],
        {"stalest": 4},
    ),
    "waste": (
        {"waste": Waste(dropped=0.2, late=0.0, withheld=0.05, under_way=0.001)},
        [
            "25% of the reports begun",
            "20% lost on the way, 5% in withheld",
            "1.2 times the clients",
        ],
        {"waste": Waste(dropped=0.09)},
    ),
    "slow": (
        {"seconds_per_batch": 7200.0},
        ["2.0 h, and 10 min in calm", "participation.every"],
        {"seconds_per_batch": 890.0},
    ),
}
