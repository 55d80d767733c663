"""Events come from the batch that formed; what claims more of it is refused, and costs nothing."""

import pytest

from raydp_sim.actors.aggregator import AggregatorActor
from raydp_sim.errors import RunError
from raydp_sim.metrics import streams
from raydp_sim.privacy import events as ev
from raydp_sim.privacy.accountant import account
from raydp_sim.privacy.bound import find_run, merge
from raydp_sim.privacy.ledger import store
from raydp_sim.privacy.ledger.ledger import Ledger
from raydp_sim.run import run
from raydp_sim.scenario import bound_mechanism
from raydp_sim.stream.trust import TRUSTS
from raydp_sim.tasks.charging import Formed, usual_event
from raydp_sim.tasks.claims import check_event
from tests.conftest import placed_everywhere, scenario

BIT = {"kind": "2rr", "epsilon_local": 1.0}
NOISE = {"kind": "central-gaussian", "radius": 1.0, "epsilon": 1.0, "delta": 1e-8}
BITS = {"clients": 200, "data": {"kind": "bernoulli", "probability": 0.5}}
UNIFORM, COINS = {"kind": "uniform", "sampled": 100}, {"kind": "self", "probability": 0.5}


def claiming(claim, trust="shuffle", mechanism=None, **sections):
    task = {"kind": "tests.tasks.claiming:Claiming", "claim": claim, "rounds": 2}
    chosen = mechanism or (NOISE if trust == "central" else BIT)
    return scenario(population=BITS, task=task, trust=trust, mechanism=chosen, **sections)


REFUSED = {
    ("a sampled shuffle", "all"): "its cohort was not uniform and secret",
    ("a sampled shuffle", "self"): "its cohort was not uniform and secret",
    ("points", "all"): "its cohort was not uniform and secret",
    ("points", "uniform"): "clients hold 1 items each",
    ("a larger cohort", "uniform"): "100 clients were sampled",
    ("more eligible", "uniform"): "only 200 clients were eligible",
    ("coins", "uniform"): "clients did not join by secret coins of that probability",
    ("rarer coins", "self"): "clients did not join by secret coins of that probability",
    ("a larger batch", "all"): "only 200 values of honest clients are in it",
    ("a smaller loss", "all"): "its messages lose",
    ("another law", "all"): "its messages follow another law",
    ("noise", "all"): "no trusted aggregator adds noise",
    ("Laplace noise", "all"): "no trusted aggregator adds noise",
    ("a central release", "all"): "no trusted aggregator adds noise",
    ("a report", "all"): "a report by itself is charged anyway",
    ("a cheap item", "all"): "it costs epsilon 1 and delta 0, more than stated",
}
POLICY = {"all": {"kind": "all"}, "uniform": UNIFORM, "self": COINS}


@pytest.mark.parametrize("claim,policy", REFUSED, ids=lambda part: part.replace(" ", "-"))
def test_a_claim_that_is_not_so_is_refused_and_nothing_is_released(
    claim, policy, tmp_path, monkeypatch
):
    folded = []
    monkeypatch.setattr(AggregatorActor, "fold", lambda self, *parts: folded.append(parts))
    base = claiming(claim, participation=POLICY[policy])
    words = rf"{REFUSED[claim, policy]}.*; nothing was released"
    with pytest.raises(RunError, match=words) as caught:
        run(base, out=tmp_path / "run")
    assert not caught.value.resumable and not folded
    assert store.read(tmp_path / "run" / "ledger").num_rows == 0
    assert streams.read(tmp_path / "run" / "metrics", "releases").num_rows == 0


@pytest.mark.parametrize(
    "claim,policy,words",
    [
        ("more noise than there is", "all", "times the sensitivity, less than stated"),
        ("Laplace noise", "all", "its noise is not Laplace's"),
        ("a central release", "all", "it costs epsilon 1 and delta 1e-08, more than stated"),
        ("Poisson noise", "self", "how many took part is published"),
        ("sampled noise", "all", "its cohort was not uniform and secret"),
        ("sampled noise", "self", "its cohort was not uniform and secret"),
        ("sampled noise of fewer", "uniform", "100 clients were sampled"),
        ("sampled noise of points", "uniform", "what is protected is an item"),
        ("noise by coins", "uniform", "clients did not join by secret coins"),
        ("noise by rarer coins", "self", "clients did not join by secret coins"),
        ("a larger batch", "all", "there is no shuffler"),
    ],
)
def test_a_trusted_aggregator_cannot_claim_more_noise_than_it_adds(claim, policy, words, tmp_path):
    if claim == "a larger batch":
        base = claiming(claim, "local", participation=POLICY[policy])
    else:
        base = claiming(claim, "central", participation=POLICY[policy])
    with pytest.raises(RunError, match=words):
        run(base, out=tmp_path / "run")
    assert store.read(tmp_path / "run" / "ledger").num_rows == 0


@pytest.mark.parametrize(
    "claim,policy,trust,event",
    [
        ("a sampled shuffle", "uniform", "shuffle", ev.SubsampledShuffle),
        ("coins", "self", "shuffle", ev.SelfSampledShuffle),
        ("less noise than there is", "all", "central", ev.GaussianRelease),
        ("sampled noise", "uniform", "central", ev.SubsampledGaussianRelease),
        ("noise by coins", "self", "central", ev.SelfSampledGaussianRelease),
    ],
)
def test_a_claim_that_is_so_is_charged(claim, policy, trust, event, tmp_path):
    base = claiming(claim, trust, participation=POLICY[policy])
    privacy = run(base, out=tmp_path / "run").summary["privacy"]
    charges = list(store.charges(tmp_path / "run" / "ledger"))
    assert {type(charge.shuffled) for charge in charges} == {event} and len(charges) == 2
    sampled = event is not ev.GaussianRelease
    assert privacy["per_client"]["min"] == privacy["per_client"]["max"] > 0.0
    assert privacy["per_client"]["never"] == 0.0
    assert "replace one client's data" in privacy["assumption"]
    assert ("every eligible client is charged" in privacy["assumption"]) == sampled


def test_points_are_checked_against_what_clients_sent():
    mechanism = bound_mechanism(claiming("nothing", "local"))
    formed = Formed(10, TRUSTS["shuffle"], 100, 10, "uniform", values=20, fewest=2, most=2, items=5)
    fine = ev.CldpRound(1.0, 100, 5, 10, 2)
    check_event(fine, mechanism, formed)
    for wrong, words in (
        (ev.CldpRound(1.0, 100, 6, 10, 2), "clients hold 5 items each"),
        (ev.CldpRound(1.0, 100, 5, 10, 1), "clients sent 2 to 2 values each"),
        (ev.CldpRound(0.5, 100, 5, 10, 2), "its messages lose"),
        (ev.Shuffle(1.0, 21, unit="item"), "only 20 values of honest clients"),
        (ev.Shuffle(1.0, 10), "clients send several values"),
        (ev.SubsampledShuffle(1.0, 100, 10, unit="item"), "it is of one value per client"),
        (None, "clients send several values"),
    ):
        with pytest.raises(RunError, match=words):
            check_event(wrong, mechanism, formed)
    check_event(ev.Shuffle(1.0, 20, unit="item"), mechanism, formed)


def test_of_several_values_only_those_of_honest_clients_are_counted():
    """Three of four clients are honest; whoever colludes may be the one that sent most."""
    formed = Formed(4, TRUSTS["shuffle"], 4, honest=3, values=20, fewest=2, most=14)
    mechanism = bound_mechanism(claiming("nothing", "local"))
    check_event(ev.Shuffle(1.0, 6, unit="item"), mechanism, formed)
    with pytest.raises(RunError, match="only 6 values of honest clients"):
        check_event(ev.Shuffle(1.0, 7, unit="item"), mechanism, formed)


# Coins of clients' own.


def test_clients_that_join_by_their_own_coins_are_all_charged(tmp_path):
    base = scenario(population=BITS, mechanism=BIT, participation=COINS)
    result = placed_everywhere(base, tmp_path, stop=2)
    privacy = result.summary["privacy"]
    charges = list(store.charges(tmp_path / "base" / "ledger"))
    mechanism = bound_mechanism(base)
    law = (mechanism.randomizer(), mechanism.alphabet())
    event = ev.SelfSampledShuffle(mechanism.losses()[0], 200, 0.5, *law)
    assert {charge.shuffled for charge in charges} == {event}
    assert all(50 < len(charge.participants) < 150 for charge in charges)
    assert (
        privacy["sampling"] == "counted" and privacy["amplification"]["used"] == "sampled shuffle"
    )
    assert privacy["per_client"]["min"] == privacy["per_client"]["max"] == privacy["epsilon"]
    assert "a coin of its own" in privacy["assumption"]


@pytest.mark.parametrize(
    "sections",
    [
        {"population": {**BITS, "availability": {"kind": "bernoulli", "probability": 0.5}}},
        {"privacy": {"honest_fraction": 0.9}},
        {"privacy": {"budget": {"epsilon": 9.0, "delta": 1e-6}}},
    ],
)
def test_coins_are_not_counted_where_something_else_decides(sections, tmp_path):
    usual = {"population": BITS, "mechanism": BIT, "participation": COINS}
    base = scenario(rounds=2, **{**usual, **sections})
    privacy = run(base, out=tmp_path / "run").summary["privacy"]
    charges = list(store.charges(tmp_path / "run" / "ledger"))
    assert {type(charge.shuffled) for charge in charges} == {ev.Shuffle}
    assert privacy["sampling"].startswith("not counted: ")


def test_coins_are_not_counted_for_several_messages_and_never_for_one_stage_of_two(tmp_path):
    """Nothing is proved for them; and a run charges everyone or participants, never both."""
    base = scenario(rounds=2, participation=COINS)
    privacy = run(base, out=tmp_path / "several").summary["privacy"]
    assert privacy["sampling"] == (
        "not counted: clients join by their own coins, and several messages of each are sent"
    )
    task = {"kind": "user-mean", "samples": 100, "sigma": 1.0}
    staged = scenario(
        population={"clients": 400, "data": {"kind": "samples", "samples": 100}},
        task=task,
        mechanism={"kind": "projected-mean", "radius": 10.0, "epsilon_local": 2.0, "levels": 3},
        participation=COINS,
    )
    run(staged, out=tmp_path / "staged")
    kinds = [type(c.shuffled) for c in store.charges(tmp_path / "staged" / "ledger")]
    assert kinds == [ev.Shuffle, ev.MultiMessageShuffle]


# Items and clients.


def test_items_and_clients_are_never_composed():
    item, client = ev.Shuffle(1.0, 100, unit="item"), ev.Shuffle(1.0, 100)
    for compose in (
        lambda events: merge(events),
        lambda events: account(events, 1e-6, ["rdp-best"]),
        lambda events: find_run("rdp-upper1").epsilon(events, 1e-6),
    ):
        with pytest.raises(ValueError, match="items and of clients are never composed"):
            compose([(item, 1), (client, 2)])
        compose([(item, 1), (item, 2)])
    assert merge([(item, 1), (client, 0)]) == [(item, 1)]
    multi = ev.MultiMessageShuffle((1.0, 1.0), 100, unit="item")
    assert merge([(multi, 2), (item, 1)]) == [(item, 5)]
    ledger = Ledger(3)
    ledger.charge(ev.LocalReport(1.0, unit="item"), range(2), item)
    before = ledger.guarantee()
    for event, release in (
        (ev.LocalReport(1.0), client),
        (ev.LocalReport(1.0, unit="item"), client),
        (ev.LocalReport(1.0), item),
    ):
        with pytest.raises(ValueError, match="items and of clients are never added up"):
            ledger.charge(event, range(3), release)
    assert ledger.guarantee() == before and ledger.charged == {ev.LocalReport(1.0, unit="item"): 1}


def test_an_account_that_names_its_view_beforehand_may_turn_out_to_be_of_items():
    ledger = Ledger(2)
    ledger.open_view(ev.LocalReport(1.0))
    ledger.charge(ev.LocalReport(1.0, unit="item"), range(2))
    assert "one item of one client's data" in ledger.guarantee().assumption


def test_a_charge_that_does_not_go_with_the_account_is_not_written_down(tmp_path):
    """The second release is of items, the first was of clients; it is refused before it is paid."""
    task = {"kind": "tests.tasks.claiming:Unsteady", "rounds": 2}
    base = scenario(population=BITS, task=task, mechanism=BIT)
    with pytest.raises(RunError, match="release 1 cannot be charged: guarantees of items and of"):
        run(base, out=tmp_path / "run")
    assert store.read(tmp_path / "run" / "ledger")["release"].to_pylist() == [0]
    assert streams.read(tmp_path / "run" / "metrics", "releases")["release"].to_pylist() in (
        [],
        [0],
    )


def test_budgets_are_of_the_planned_mechanism_and_no_other(tmp_path):
    task = {"kind": "tests.tasks.examples:Switching", "rounds": 4, "period": 1, "planned": False}
    base = scenario(
        task=task,
        shuffle={"min_batch": 50},
        privacy={"budget": {"epsilon": 8.0, "delta": 1e-6}},
        population={"clients": 200, "data": {"kind": "gaussian", "dimension": 6, "clip": 0.5}},
    )
    with pytest.raises(RunError, match="its mechanism is not the planned one"):
        run(base, out=tmp_path / "run")
    assert store.read(tmp_path / "run" / "ledger")["release"].to_pylist() == [0]


@pytest.mark.parametrize("honest", [10, 7])
def test_what_is_usual_is_never_refused(honest):
    """Every mechanism and every way of sampling, as the engine knows it."""
    from raydp_sim.mechanisms import MECHANISMS

    checked = 0
    for kind, cls in MECHANISMS.kinds.items():
        mechanism = MECHANISMS.parse(
            {"kind": kind, "dimension": 1, "clients": 50, **cls.examples[0]}
        )
        for trust in TRUSTS.values():
            if (mechanism.where == "aggregator") != (trust.noise_at == "aggregator"):
                continue
            for sampling in (None, "uniform", "coins") if honest == 10 else (None,):
                for slots in (None, (4, 6)):
                    formed = Formed(10, trust, 50, honest, sampling, 0.2, values=10, slots=slots)
                    check_event(usual_event(mechanism, formed), mechanism, formed)
                    checked += 1
    assert checked > 60
