"""Scoring is off the critical path: the next ask waits for the state, not for rows."""

from raydp_sim.actors.conductor import Conductor
from raydp_sim.actors.crew import Crew
from raydp_sim.run import run
from tests.actors.scrambled import Scrambled
from tests.conftest import scenario

FOLLOWING = {"kind": "tests.actors.following:Following", "rounds": 5}


class Late(Scrambled):
    """The metrics actor does nothing as long as anybody else has something to do."""

    def __init__(self, seed=0):
        super().__init__(seed)
        self.last, self.log = None, []

    def _run_one(self):
        others = {
            actor: queue
            for actor, queue in self.queues.items()
            if actor != self.last and queue and self._can_run(queue[0])
        }
        whole = self.queues
        if others:
            self.queues = others
        before = {actor: queue[0] for actor, queue in self.queues.items() if queue}
        super()._run_one()
        for actor, call in before.items():
            if not self.queues[actor] or self.queues[actor][0] is not call:
                self.log.append(call[1])
        self.queues = whole


def played(tmp_path, base, late):
    backend = Late(3)
    crew = Crew(base, backend, tmp_path)
    crew.begin(0, 0, None)
    (tmp_path / "ledger").mkdir()
    backend.last = id(crew.metrics) if late else None
    backend.log.clear()
    rows = list(Conductor(crew).play(base.task.rounds))
    return rows, backend.log


def test_all_asks_are_made_before_a_slow_metrics_actor_scores_anything(tmp_path):
    base = scenario(task=FOLLOWING)
    rows, log = played(tmp_path, base, late=True)
    steps = [call for call in log if call in ("ask", "steps", "records")]
    # A step says what is asked next, too.
    assert steps == ["ask", *["steps"] * 5, *["records"] * 5]
    expected = run(base, out=tmp_path / "run").metrics.to_pylist()
    assert rows == expected


def test_the_log_would_show_a_record_in_between(tmp_path):
    """Without holding the metrics actor back, some release is scored before the last step."""
    _, log = played(tmp_path, scenario(task=FOLLOWING), late=False)
    last = max(place for place, call in enumerate(log) if call == "steps")
    assert "records" in log[:last]


def test_a_checkpoint_waits_for_the_rows_before_it(tmp_path):
    """What a checkpoint has the rows of must be on disk, however slow scoring is."""
    from raydp_sim.metrics import streams

    base, backend = scenario(task=FOLLOWING), Late(3)
    crew = Crew(base, backend, tmp_path)
    crew.begin(0, 0, None)
    (tmp_path / "ledger").mkdir()
    backend.last = id(crew.metrics)
    conductor, seen = Conductor(crew), []

    def checkpoint(finished):
        conductor.checkpoint(finished)
        seen.append(streams.read(tmp_path / "metrics", "errors").num_rows)

    conductor.on_finished = checkpoint
    list(conductor.play(5))
    assert seen == [1, 2, 3, 4, 5]
