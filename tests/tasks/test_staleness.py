"""Late gradients: they answer the model they were asked about, weigh less, and cost the same."""

import numpy as np
import pytest

from raydp_sim.actors.aggregator import AggregatorActor
from raydp_sim.mechanisms.central_gaussian import CentralGaussian
from raydp_sim.mechanisms.privunit import PrivUnit
from raydp_sim.metrics import streams
from raydp_sim.privacy import events as ev
from raydp_sim.privacy.ledger import store
from raydp_sim.run.play import prepare, reopen, run
from raydp_sim.scenario import bound_mechanism, parse
from raydp_sim.tasks.learning.optimizers import Sgd
from raydp_sim.tasks.learning.sgd import CldpSgd

BALL = {"radius": 0.5, "on_out_of_range": "clip"}
ONE = {"kind": "rinf", **BALL, "epsilon_local": 2.0}
MANY = {"kind": "l2", **BALL, "epsilon_local": 4.0, "coordinates": 8}
# So little noise that what is released is the mean itself.
EXACT = {"kind": "central-gaussian", **BALL, "epsilon": 1e6, "delta": 1e-8}
STEPS = {"kind": "gaussian-steps", "radius": 0.5, "steps": 2, "sigma": 0.5}
PSI = {"scalar_radius": 0.05, "scalar_sigma": 0.2}


def late(task, mechanism, exponent=1.0, trust="shuffle", **placement):
    return parse(
        {
            "name": "late",
            "seed": 2,
            "trust": trust,
            "population": {
                "clients": 60,
                "data": {"kind": "synthetic-digits", "n": 300, "side": 4, "test": 20, "points": 4},
                "latency": {"kind": "lognormal", "median": 8.0, "sigma": 1.0},
            },
            "participation": {
                "kind": "asynchronous",
                "batch": 15,
                "every": 30.0,
                "staleness_exponent": exponent,
            },
            "mechanism": mechanism,
            "task": {"rounds": 6, "evaluate_every": 3, **task},
            "placement": {"backend": "inline", "checkpoint_seconds": 0, **placement},
        }
    )


def noted(mechanism, monkeypatch):
    """Note of every batch which round each client was asked in, its gradient, and what was sent."""
    sent, pending = [], {}
    messages, client = mechanism.messages, CldpSgd.client

    def computed(self, setting, ask, data, memory, slots, randomizer, stream):
        answer = client(self, setting, ask, data, memory, slots, randomizer, stream)
        for number, row in zip(stream.ids, answer.values, strict=True):
            pending[int(number)] = int(ask.broadcast["rounds"]), row.astype(np.float64)
        return answer

    def randomized(self, values, stream):
        if pending:  # else it is a trial before the run
            sent.append(([pending[int(number)] for number in stream.ids], values.copy()))
            pending.clear()
        return messages(self, values, stream)

    monkeypatch.setattr(CldpSgd, "client", computed)
    monkeypatch.setattr(mechanism, "messages", randomized)
    return sent


def rows(folder, stream):
    return streams.read(folder / "metrics", stream).to_pylist()


def test_a_round_steps_against_the_weighted_mean_of_gradients_of_older_models(
    tmp_path, monkeypatch
):
    """What was sent, by whom and of which round is noted; the step is worked out from that.

    Noise of 6 rounds in 170 coordinates is within 7 standard deviations but for 3e-9.
    """
    sent = noted(CentralGaussian, monkeypatch)
    moves, move, weights = [], Sgd.move, []

    def moved(self, gradient, t, memory):
        moves.append(gradient)
        return move(self, gradient, t, memory)

    monkeypatch.setattr(Sgd, "move", moved)
    made = late({"kind": "cldp-sgd"}, EXACT, trust="central")
    noise, playing = bound_mechanism(made).sigma(15), prepare(made, out=tmp_path / "run")
    for release, row in enumerate(playing.play()):
        asked, values = sent[release]
        own = np.array([1.0 / (1 + release - rounds) for rounds, _ in asked])
        clipped = np.stack([gradient for _, gradient in asked])
        norms = np.linalg.norm(clipped, axis=1)
        clipped *= np.minimum(1.0, 0.5 / norms)[:, None]
        # What the mechanism is handed is weighted already, so all noise comes after the weights.
        np.testing.assert_allclose(values, clipped * own[:, None], rtol=1e-6, atol=1e-9)
        mean = (own[:, None] * clipped).sum(axis=0) / own.sum()
        assert np.abs(moves[release] - mean).max() < 7.0 * noise / own.mean()
        assert row["staleness"] == pytest.approx(np.mean(1.0 / own - 1.0))
        weights += own.tolist()
    assert len(set(weights)) > 2 and min(weights) <= 1.0 / 3.0


def test_weights_are_applied_before_noise_and_change_no_charge(tmp_path, monkeypatch):
    """Values scaled down stay in the ball, so every report is as private as it was."""
    sent, charged = noted(PrivUnit, monkeypatch), {}
    for exponent in (0.0, 2.0):
        made = late({"kind": "cldp-sgd", "step_size": 1e-3}, {**ONE, "kind": "privunit"}, exponent)
        summary = run(made, out=tmp_path / str(exponent)).summary
        charges = list(store.charges(tmp_path / str(exponent) / "ledger"))
        charged[exponent] = [(charge.event, charge.shuffled) for charge in charges]
        assert max(row["stalest"] for row in rows(tmp_path / str(exponent), "releases")) >= 2
        assert summary["privacy"]["sampling"].startswith("not counted")
    assert charged[0.0] == charged[2.0]
    (event,) = {release for _, release in charged[2.0]}
    assert isinstance(event, ev.Shuffle) and event.n == 15 and event.unit == "item"
    norms = [np.linalg.norm(values, axis=1) for _, values in sent]
    assert len(norms) == 12 and max(each.max() for each in norms) <= 0.5 * (1.0 + 1e-9)
    # All gradients are long here and clipped to the radius; weights put late ones below it.
    assert min(each.min() for each in norms[:6]) > 0.49
    stale = np.array(
        [release - rounds for release in range(6) for rounds, _ in sent[6 + release][0]]
    )
    np.testing.assert_allclose(np.concatenate(norms[6:]), 0.5 * (1.0 + stale) ** -2.0, rtol=1e-6)


TASKS = {
    "cldp-sgd": ({"sampled_points": 2}, ONE, "shuffle"),
    "fedavg": ({"steps": 2}, {**EXACT, "epsilon": 1.0}, "central"),
    "dp-fedavg": ({}, STEPS, "local"),
    "adaped": ({"keep_personal": True}, {**STEPS, **PSI}, "local"),
    "mms-sgd": ({"step_size": 0.5}, MANY, "shuffle"),
}


@pytest.mark.parametrize("kind", TASKS)
def test_training_with_late_clients_is_the_same_wherever_they_are_and_after_a_stop(kind, tmp_path):
    task, mechanism, trust = TASKS[kind]
    given = ({"kind": kind, **task}, mechanism, 0.5, trust)
    run(late(*given), out=tmp_path / "one")
    run(late(*given, clients_per_actor=7), out=tmp_path / "two")
    playing = prepare(late(*given), out=tmp_path / "cut").play()
    next(playing), next(playing), next(playing)
    playing.close()
    for _ in reopen(tmp_path / "cut").play():
        pass
    assert max(row["stalest"] for row in rows(tmp_path / "one", "releases")) >= 1
    for other in ("two", "cut"):
        for stream in ("releases", "training", "learning", "personal"):
            assert rows(tmp_path / "one", stream) == rows(tmp_path / other, stream)
        for path in (tmp_path / "one" / "model").rglob("*.npz"):
            assert path.read_bytes() == (tmp_path / other / "model" / path.name).read_bytes()


def test_readers_divide_by_the_mean_weight_and_know_no_single_one(tmp_path, monkeypatch):
    """What a reader is told of lateness is one number of the whole batch."""
    told, step = [], AggregatorActor.step

    def noted(self, release, reports, weight, *more):
        told.append((reports, weight))
        return step(self, release, reports, weight, *more)

    monkeypatch.setattr(AggregatorActor, "step", noted)
    run(late({"kind": "cldp-sgd"}, ONE), out=tmp_path / "run")
    assert len(told) == 6 and all(reports == 15 for reports, _ in told)
    assert min(weight for _, weight in told) < 1.0
