"""Analysts at several levels: each is handed its own keys, and sees what its level shows."""

import dataclasses
import math

import numpy as np
import pytest

from raydp_sim.actors.analyst import AnalystActor
from raydp_sim.actors.answers import Answers
from raydp_sim.actors.conductor import Conductor
from raydp_sim.actors.crew import Crew
from raydp_sim.cli.summary_table import print_summary
from raydp_sim.errors import RunError
from raydp_sim.metrics import streams
from raydp_sim.metrics.level_panels import followed
from raydp_sim.privacy.ledger import store
from raydp_sim.random import Stream
from raydp_sim.run import run
from raydp_sim.scenario import bound_mechanism, setting_of
from raydp_sim.stream.batches import Recorded
from raydp_sim.stream.sealed import Posted, Promotion, Sealed, lock_of, record_ids, secret_of
from raydp_sim.tasks.base import Ask
from tests.actors.leveled import CATEGORIES, analysts, promoting
from tests.actors.scrambled import Scrambled
from tests.conftest import assert_identical, interrupted, placed_everywhere, with_placement

WAYS = {
    "sealed": ("shuffle", {}),
    "direct": ("shuffle", {"key_path": "direct"}),
    "local": ("local", {}),
}


def played(base, folder, backend=None):
    """Play a scenario; return the crew and everything that each reader was handed."""
    backend = backend or Scrambled(3)
    spawn, call, handed, actors = backend.spawn, backend.call, {}, {}

    def spawning(cls, *args, anywhere=False):
        actor = spawn(cls, *args, anywhere=anywhere)
        actors[id(actor)] = actor
        handed[id(actor)] = [("spawned", args)]
        return actor

    def calling(actor, method, *args, returns=1):
        refs = call(actor, method, *args, returns=returns)
        handed[id(actor)].append((method, args))
        return refs

    backend.spawn, backend.call = spawning, calling
    crew = Crew(base, backend, folder)
    crew.begin(0, 0, None)
    (folder / "ledger").mkdir()
    conductor = Conductor(crew)
    conductor.on_finished = conductor.checkpoint
    list(conductor.play(base.task.rounds))
    # What references stand for is there when everything has been done.
    found = [
        [
            (method, [getattr(arg, "value", arg) for arg in args])
            for method, args in handed[id(reader)]
        ]
        for reader in crew.readers
    ]
    return crew, found


def begun(base, backend, folder):
    """Return a crew that is ready to play."""
    for name in ("ledger", "checkpoints"):
        (folder / name).mkdir(parents=True)
    crew = Crew(base, backend, folder)
    crew.begin(0, 0, None)
    return crew


def parts(value):
    """Yield everything inside what was handed over, however deep."""
    yield value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        inner = [getattr(value, field.name) for field in dataclasses.fields(value)]
    elif isinstance(value, dict):
        inner = [*value, *value.values()]
    elif isinstance(value, list | tuple):
        inner = list(value)
    else:
        inner = []
    for each in inner:
        yield from parts(each)


@pytest.mark.parametrize("way", WAYS)
def test_an_analyst_is_handed_its_own_keys_and_nobody_elses(tmp_path, way):
    trust, more = WAYS[way]
    base = with_placement(promoting(trust, privacy=more), 2 if trust == "shuffle" else 1)
    base = with_placement(base, base.shuffle.shufflers, clients_per_actor=150)
    crew, handed = played(base, tmp_path)
    root = Stream(base.seed)
    secrets = [secret_of(root, reader) for reader in range(3)]
    mechanism = bound_mechanism(base)
    ids = np.arange(400, dtype=np.uint32)
    sealed = [[] for _ in crew.readers]
    for reader, calls in enumerate(handed):
        methods = {method for method, _ in calls}
        assert methods <= {
            "spawned", "begin", "ask", "expect", "fold", "step", "checkpoint", "promote",
            "collect", "admit", "discard",
        }  # fmt: skip
        everything = [each for _, args in calls for value in args for each in parts(value)]
        # Of secrets its own, and not the seed that all keys follow from.
        texts = [each for each in everything if isinstance(each, str)]
        assert [text for text in texts if text in secrets] == (
            secrets[reader : reader + 1] if reader else []
        )
        assert base.seed not in [each for each in everything if isinstance(each, int)]
        sealed[reader] = [each for each in everything if isinstance(each, Sealed)]
        assert {column.lock for column in sealed[reader]} <= {lock_of(secrets[reader])}
        for each in everything:
            kinds = (Recorded, Posted, Promotion)
            if dataclasses.is_dataclass(each) and hasattr(each, "rid"):
                assert isinstance(each, kinds) or type(each).__name__ == "Records"
            if isinstance(each, Recorded):
                assert each.records.sealed == ()
    assert sealed[0] == [] and sealed[1] and sealed[2]
    # What came are the keys of the reader's own level, bit by bit, for every record it reads.
    place = root.at("repetition", 0, "randomize")
    for reader in (1, 2):
        keys = {}
        for method, args in handed[reader]:
            if method in ("fold", "step") and way == "sealed":
                shares = (
                    [a for a in args if isinstance(a, Recorded)],
                    [a for a in args if isinstance(a, Sealed)],
                )
                for public, column in zip(*shares, strict=True):
                    keys.setdefault(args[0], {}).update(
                        zip(
                            public.records.rid.tolist(),
                            column.open(secrets[reader]).tolist(),
                            strict=True,
                        )
                    )
            if method == "collect":
                for posted in args:
                    opened = posted.key.open(secrets[reader]).tolist()
                    keys.setdefault(posted.release, {}).update(
                        zip(posted.rid.tolist(), opened, strict=True)
                    )
        assert set(keys) == set(range(5))
        for release, found in keys.items():
            drawn = mechanism.keys(place.at(release).clients(ids))
            level = setting_of(base).levels.level(reader, release)
            own = dict(
                zip(
                    record_ids(place.at(release), ids).tolist(),
                    drawn[:, level].tolist(),
                    strict=True,
                )
            )
            assert 200 < len(found) < 400 and all(own[rid] == bit for rid, bit in found.items())


def test_no_attribute_of_an_analyst_leads_to_another_key(tmp_path):
    crew, _ = played(promoting(), tmp_path)
    for reader in (1, 2):
        actor = crew.readers[reader]
        assert isinstance(actor, AnalystActor)
        others = [secret_of(Stream(11), other) for other in (1, 2) if other != reader]
        for each in parts(list(vars(actor).values())):
            assert not isinstance(each, Sealed) or each.lock == lock_of(
                secret_of(Stream(11), reader)
            )
            assert not (isinstance(each, str) and each in others)
        assert actor.scenario.seed != 11


@pytest.mark.parametrize("way", WAYS)
def test_every_placement_resumed_or_not_gives_the_same(tmp_path, way):
    trust, more = WAYS[way]
    result = placed_everywhere(promoting(trust, 120, privacy=more), tmp_path, stop=2)
    assert {row["view"] for row in result.summary["views"]["rows"]} == {
        "public", "analyst-1", "analyst-2", "all together",
    }  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_clients_that_die_are_respawned_with_the_same_keys(tmp_path, way):
    trust, more = WAYS[way]
    base = with_placement(promoting(trust, 120, privacy=more), clients_per_actor=40)
    untouched = begun(base, Scrambled(2), tmp_path / "whole")
    whole, rows, backend = list(Conductor(untouched).play(base.task.rounds)), [], Scrambled(5)
    crew = begun(base, backend, tmp_path / "part")
    for row in Conductor(crew).play(base.task.rounds):
        rows.append(row)
        backend.kill(crew.clients[len(rows) % 3])
    assert sum(crew.epochs) >= 1 and rows == whole


@pytest.mark.cluster
@pytest.mark.parametrize("way", ["sealed", "local"])
def test_ray_gives_what_inline_gives(tmp_path, way, ray_session):
    trust, more = WAYS[way]
    base = promoting(trust, 120, privacy=more)
    run(base, out=tmp_path / "inline")
    shufflers = 2 if trust == "shuffle" else 1
    run(with_placement(base, shufflers, backend="ray", clients_per_actor=50), out=tmp_path / "ray")
    assert_identical(tmp_path / "inline", tmp_path / "ray")


def test_ways_of_keys_do_not_change_what_is_estimated(tmp_path):
    tables = []
    for way, (trust, more) in WAYS.items():
        run(promoting(trust, privacy=more), out=tmp_path / way)
        tables.append([streams.read(tmp_path / way / "metrics", f"analyst-{j}") for j in (1, 2)])
    assert tables[0] == tables[1] == tables[2]


def test_an_analyst_estimates_what_its_level_shows(tmp_path):
    """Exactly what the mechanism's own functions make of all reports and keys."""
    base = analysts(rounds=2)
    result = run(base, out=tmp_path / "run")
    mechanism, ids = bound_mechanism(base), np.arange(400, dtype=np.uint32)
    data = base.population.hold(ids, base.stream(0))
    for release in range(2):
        released = mechanism.released(data, base.stream(0).at("randomize", release).clients(ids))
        for reader, name in enumerate(setting_of(base).levels.names):
            level = 2 if reader == 0 else reader - 1
            seen = mechanism.opened(released.payload[:, 0], released.keys[:, level], level)
            counts = mechanism.fold(mechanism.zero(), np.zeros(400, np.int64), seen)
            table = streams.read(result.run_dir / "metrics", name)
            own = table.filter(np.asarray(table["release"]) == release)["estimate"].to_numpy()
            assert np.array_equal(own, mechanism.view(level).decode(counts))


def test_groups_are_drawn_afresh_and_not_by_number():
    base = analysts()
    mechanism, ids = bound_mechanism(base), np.arange(400, dtype=np.uint32)
    data = base.population.hold(ids, base.stream(0))
    columns = [
        mechanism.released(data, base.stream(0).at("randomize", release).clients(ids)).payload[:, 0]
        // 2
        for release in range(2)
    ]
    assert not np.array_equal(columns[0], columns[1])
    for column in columns:
        # By number every one of 16 groups would have 25 clients; 400 draws do with chance < 1e-6.
        assert np.mean(column == ids % mechanism.columns) < 0.5
        assert len(set(np.bincount(column, minlength=16).tolist())) > 1


def test_a_key_that_hid_a_value_is_not_used_again():
    base = analysts()
    ids = np.arange(400, dtype=np.uint32)
    data = base.population.hold(ids, base.stream(0))
    answers = Answers(base.task, setting_of(base), data, ids, base.stream(0))
    answers.begin()
    asks = {0: Ask(bound_mechanism(base)), 1: Ask(bound_mechanism(base))}
    some = np.arange(100)
    answers.give(0, asks, some, None, None, lambda _: None)
    answers.give(1, asks, slice(None), None, None, lambda _: None)
    answers.give(0, asks, some + 100, None, None, lambda _: None)
    with pytest.raises(RunError, match="client 199's key at release 0 was used before"):
        answers.give(0, asks, np.arange(199, 300), None, None, lambda _: None)


def tampered(change):
    """Return a backend that changes the keys on their way to the first analyst."""
    backend = Scrambled(1)
    call = backend.call

    def calling(actor, method, *args, returns=1):
        if method == "collect" and isinstance(actor, AnalystActor) and actor.reader == 1:
            args[0].value = change(args[0].value)
        return call(actor, method, *args, returns=returns)

    backend.call = calling
    return backend


def changed(**changes):
    """Return a function that changes columns of posted keys."""
    return lambda posted: dataclasses.replace(
        posted, **{name: change(getattr(posted, name)) for name, change in changes.items()}
    )


REST = slice(1, None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (changed(rid=lambda rid: rid[REST], key=lambda key: key.take(REST)), "have no key"),
        (changed(rid=lambda rid: np.append(rid[REST], rid[1])), "comes twice"),
        (changed(key=lambda key: key.take(REST)), "399 keys for 400 record ids"),
        (changed(key=lambda key: dataclasses.replace(key, lock="x")), "for another reader"),
    ],
)
def test_keys_that_do_not_fit_the_records_are_refused(tmp_path, change, said):
    with pytest.raises(RunError, match=said):
        played(analysts("local"), tmp_path, tampered(change))


def test_keys_of_a_dead_placement_are_refused():
    base = analysts("local")
    analyst = AnalystActor(base.document(), 1, "secret")
    analyst.admit(0, 2)
    column = Sealed(lock_of("secret"), 1, 0, np.zeros(0, np.uint8))
    none = np.zeros(0, np.uint64)
    assert analyst.collect(Posted(0, 0, 1, none, column), Posted(0, 0, 2, none, column)) == [
        False,
        True,
    ]


def test_a_promotion_opens_reports_of_those_who_came_again(tmp_path):
    base = promoting()
    result = run(base, out=tmp_path / "run")
    rows = streams.read(result.run_dir / "metrics", "refined").to_pylist()
    assert [row["of"] for row in rows] == [0, 1, 2] and {row["reader"] for row in rows} == {
        "analyst-2"
    }
    sizes = {row["release"]: row["batch_size"] for row in result.metrics.to_pylist()}
    present = {
        c.release: set(np.asarray(c.participants).tolist())
        for c in store.charges(result.run_dir / "ledger", 0)
    }
    for row in rows:
        again = len(present[row["of"]] & present[3])
        assert (row["promoted"], row["missing"]) == (again, sizes[row["of"]] - again)
        assert row["missing"] > 50
    found = {row["view"]: row for row in result.summary["views"]["rows"]}
    opened = sum(row["promoted"] for row in rows)
    assert found["analyst-2"]["promotion_bits"] == opened
    assert found["analyst-2"]["key_bits"] == sum(sizes.values()) + opened
    assert found["analyst-1"]["key_bits"] == sum(sizes.values())
    assert found["public"]["key_bits"] == 0
    # Reports that came again are seen as analyst 1 sees them: from then on estimates are the same.
    one, two = (streams.read(result.run_dir / "metrics", f"analyst-{j}") for j in (1, 2))
    later = np.asarray(one["release"]) >= 3
    assert one.filter(later)["estimate"] == two.filter(later)["estimate"]
    assert one.filter(~later)["estimate"] != two.filter(~later)["estimate"]


def test_keys_for_reports_that_were_withheld_are_delivered_and_open_nothing(tmp_path):
    handed, opened = [], []
    for least in (1, 265):  # release 0 has 262 reports, all others more
        base = promoting(shuffle={"min_batch": least})
        result = run(base, out=tmp_path / str(least))
        found = {row["view"]: row for row in result.summary["views"]["rows"]}
        handed.append(found["analyst-2"]["promotion_bits"])
        rows = streams.read(result.run_dir / "metrics", "refined").to_pylist()
        opened.append([(row["of"], row["promoted"]) for row in rows])
    assert handed[0] == handed[1] == sum(count for _, count in opened[0])
    assert opened[1] == opened[0][1:]


def test_after_a_promotion_with_everyone_there_earlier_estimates_are_the_other_levels(tmp_path):
    privacy = {"levels": [3.0, 2.0, 1.0], "promotions": [{"analyst": 2, "to": 1, "release": 2}]}
    result = run(analysts(rounds=3, privacy=privacy), out=tmp_path / "run")
    again = streams.read(result.run_dir / "metrics", "reopened")
    for release in (0, 1):
        own = again.filter(np.asarray(again["of"]) == release)["after"].to_numpy()
        table = streams.read(result.run_dir / "metrics", "analyst-1")
        other = table.filter(np.asarray(table["release"]) == release)["estimate"].to_numpy()
        assert np.allclose(own, other, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kind", ["ldp-rec", "recoverable-hadamard"])
def test_every_record_is_recovered_and_a_wrong_one_is_noticed(tmp_path, kind, monkeypatch):
    mechanism = {"kind": kind, "categories": CATEGORIES}
    base = analysts(rounds=2, mechanism=mechanism, privacy={"levels": [math.inf, 1.0]})
    base = with_placement(base, 2, clients_per_actor=77)
    result = run(base, out=tmp_path / "run")
    rows = {row["view"]: row for row in result.summary["views"]["rows"]}
    assert rows["analyst-1"]["errors"]["recovered"] is True
    assert rows["analyst-1"]["errors"]["l2_raw"] == 0.0 and rows["analyst-1"]["epsilon"] is None
    assert "recovered" not in rows["public"]["errors"]
    cls = type(bound_mechanism(base))
    right = cls.recovered
    monkeypatch.setattr(cls, "recovered", lambda *a: np.roll(right(*a), 1))
    wrong = run(base, out=tmp_path / "wrong")
    assert wrong.summary["views"]["rows"][1]["errors"]["recovered"] is False


def test_checkpoints_hold_an_analysts_keys_in_its_own_file_alone(tmp_path):
    base = with_placement(promoting(), checkpoint_seconds=0)
    interrupted(base, tmp_path / "run", 2)
    *_, main = sorted((tmp_path / "run" / "checkpoints").glob("*.npz"))
    with np.load(main) as arrays:
        assert not any("key" in name or name.startswith("state-") for name in arrays.files)
    files = {path.stem: path for path in main.with_suffix(".readers").glob("*.npz")}
    assert set(files) == {"1", "2"}
    for reader, path in files.items():
        with np.load(path) as arrays:
            assert all(
                name.startswith((f"state-{reader}/", f"public-{reader}/")) for name in arrays.files
            )
            # Only who will be promoted keeps reports and its keys for them.
            assert (f"state-{reader}/key" in arrays.files) == (reader == "2")


@pytest.mark.parametrize("trust", ["shuffle", "local"])
def test_a_budget_holds_against_all_analysts_together(tmp_path, trust):
    privacy = {"levels": [3.0, 2.0, 1.0], "delta": 1e-6, "budget": {"epsilon": 9.5, "delta": 1e-6}}
    result = run(promoting(trust, privacy=privacy | {"promotions": []}), out=tmp_path / "run")
    spent = result.summary["privacy"]
    assert spent["per_client"]["max"] <= 9.5
    if trust == "local":
        # Three reports at 3, and no fourth.
        assert (
            spent["per_client"]["max"] == pytest.approx(9.0) and spent["budget"]["exhausted"] > 0.3
        )
        assert spent["participation"]["max"] == 3


def test_the_run_costs_what_all_analysts_together_learn(tmp_path):
    sampled = {"kind": "uniform", "sampled": 100}
    result = run(analysts(rounds=2, participation=sampled), out=tmp_path / "run")
    rows = {row["view"]: row for row in result.summary["views"]["rows"]}
    spent = result.summary["privacy"]
    assert rows["all together"]["epsilon"] == rows["analyst-1"]["epsilon"] == spent["epsilon"]
    assert rows["public"]["epsilon"] < rows["analyst-2"]["epsilon"] < spent["epsilon"]
    assert (
        spent["epsilon_local"] == pytest.approx(3.0)
        and "all analysts together" in spent["assumption"]
    )


def test_the_summary_says_for_whom_and_at_which_delta_an_epsilon_holds(tmp_path, capsys):
    told = {"levels": [math.inf, 2.0, 1.0], "promotions": [{"analyst": 2, "to": 1, "release": 3}]}
    print_summary(run(promoting(privacy=told), out=tmp_path / "run").summary)
    said = " ".join(capsys.readouterr().out.split())
    assert "at delta 1e-06 for all but analyst-1 and analyst-2, by views below" in said
    assert "epsilon at delta 1e-06 where shuffling counts" in said
    assert "not for analyst-1, analyst-2: bits are seen as they are, without noise" in said


def test_a_picture_follows_categories_over_time(tmp_path, drawn):
    result = run(promoting(clients=60, rounds=4), out=tmp_path / "run")
    assert (result.run_dir / "plot.png").stat().st_size > 50_000
    assert followed(result.run_dir / "metrics") == [3, 0]
