"""What goes wrong on real nodes changes no number: a node is lost, cut off, slow; a disk is full.

Each node has a network namespace and an address of its own. A scenario of each trust model is
played; what it leaves behind is what one process leaves that nothing happened to.
"""

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from raydp_sim.run import run
from tests.cluster.spaces import ALERT, spaces
from tests.cluster.test_nodes import MODELS
from tests.conftest import assert_identical, scenario, with_placement

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
PACED = Path(__file__).with_name("paced.py")
ROUNDS, LONG_ROUNDS = 40, 600
OFF_SECONDS, BACK_SECONDS = 20.0, 3.0
MOST_RESUMED = 3
EVERY_MODEL = [pytest.param(trust, marks=pytest.mark.long) for trust in MODELS]


@pytest.fixture(scope="module")
def three():
    """A head and two more, one of which is lost now and then."""
    with spaces(3, ALERT) as made:
        yield made


@pytest.fixture
def nodes(three):
    three.mend()
    return three


def written(trust, folder, rounds=ROUNDS, shufflers=2):
    """Play a scenario in one process; return its file for several nodes, and what it left."""
    base = scenario(300, rounds, trust=trust, privacy={"delta": 1e-4}, **MODELS[trust])
    run(base, out=folder / "inline")
    shufflers = shufflers if trust == "shuffle" else 1
    settings = {"clients_per_actor": 50, "checkpoint_seconds": 0.2, "span": 1}
    placed = with_placement(base, shufflers, backend="ray", **settings)
    file = folder / "own.yaml"
    file.write_text(yaml.safe_dump(placed.document()))
    return file, folder / "inline"


class Paced:
    """A driver that waits after some rows; see paced.py."""

    def __init__(self, nodes, file, out, *waits):
        words = (str(PACED), str(file), str(out), nodes.head, *map(str, waits))
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 1}
        self.process = nodes.inside(0, sys.executable, *words, **pipes)

    def heard(self):
        """Return what it says next that is no line of somebody else's."""
        for line in self.process.stdout:
            print(line, end="")
            if line.startswith("{"):
                return json.loads(line)
        return {}

    def go_on(self):
        self.process.stdin.write("\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with self.process as process:
            process.kill()


def beside_the_head(nodes, said):
    """Return a node other than the head's that has clients, and how many actors of them."""
    where = said["clients"]
    there = {place: where.count(nodes.address(place)) for place in nodes.spaces if place}
    place = max(there, key=there.__getitem__)
    assert there[place], f"no client is beside the head {nodes.address(0)}: they are at {where}"
    return place, there[place]


def ended(process, seconds=300):
    """Return the exit code of a process and what it said."""
    said, _ = process.communicate(timeout=seconds)
    print(said)
    return process.returncode, " ".join(said.split())


def finish(nodes, out, code, place=0):
    """Resume as often as it has to be, and is worth it."""
    resumed = 0
    while code == 3 and resumed < MOST_RESUMED:
        nodes.mend()
        code, _ = ended(nodes.resume(out, place))
        resumed += 1
    assert code == 0
    return resumed


def until(there, process, seconds=240):
    """Wait for something while a process lives."""
    deadline = time.monotonic() + seconds
    while not there():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.long
def test_the_next_scenario_has_all_nodes_whatever_became_of_them(nodes):
    """One was ended and not noticed yet, and one given up that still runs."""
    everywhere = sorted(map(nodes.address, nodes.spaces))
    nodes.cut(1)
    assert nodes.alive(nodes.address(0), nodes.address(2))
    nodes.join_again(1)
    nodes.lose(2)
    nodes.mend()
    assert nodes.alive() == everywhere


@pytest.mark.parametrize(
    "trust", [pytest.param("local", marks=pytest.mark.slow), *EVERY_MODEL[::2]]
)
def test_a_node_is_lost_in_mid_run(trust, nodes, tmp_path):
    """Its clients go elsewhere; where it had a shuffler, too, a checkpoint is gone back to."""
    file, whole = written(trust, tmp_path)
    with Paced(nodes, file, tmp_path / "made", 5) as driver:
        before = driver.heard()
        assert before["row"] == 5
        place, clients = beside_the_head(nodes, before)
        nodes.lose(place)
        driver.go_on()
        said = driver.heard()
        code = driver.process.wait(240)
    resumed = finish(nodes, tmp_path / "made", code)
    assert resumed or said["crews"] > 1 or said["replaced"] >= before["replaced"] + clients
    assert trust == "shuffle" or not resumed
    assert_identical(whole, tmp_path / "made")


@pytest.mark.parametrize("trust", EVERY_MODEL)
def test_a_node_is_cut_off_and_comes_back(trust, nodes, tmp_path):
    """Its clients are replaced meanwhile; what they made before that is refused from then on."""
    file, whole = written(trust, tmp_path, shufflers=1)
    with Paced(nodes, file, tmp_path / "made", 5, 20) as driver:
        before = driver.heard()
        assert before["row"] == 5
        place, clients = beside_the_head(nodes, before)
        nodes.cut(place)
        off = time.monotonic()
        driver.go_on()
        said = driver.heard()
        time.sleep(max(0.0, off + OFF_SECONDS - time.monotonic()))
        nodes.join_again(place)
        time.sleep(BACK_SECONDS)
        driver.go_on()
        last = driver.heard()
        assert driver.process.wait(240) == 0
    nodes.lose(place)  # Ray ends a node by itself that was taken for dead, but not at once
    assert said["replaced"] >= before["replaced"] + clients
    assert said["late"] >= 1 and said["taken"] == 0
    assert last == {"over": True, "replaced": said["replaced"], "crews": 1}
    assert_identical(whole, tmp_path / "made")


@pytest.mark.parametrize("trust", EVERY_MODEL)
def test_a_slow_node_is_waited_for(trust, nodes, tmp_path):
    """It runs a fifth of the time; nobody takes it for lost."""
    file, whole = written(trust, tmp_path)
    with Paced(nodes, file, tmp_path / "made", 5) as driver:
        before = driver.heard()
        assert before["row"] == 5
        with nodes.slow(beside_the_head(nodes, before)[0]):
            driver.go_on()
            said = driver.heard()
            code = driver.process.wait(240)
    assert (code, said["replaced"]) == (0, before["replaced"])
    assert_identical(whole, tmp_path / "made")


def fill(disk):
    """Leave no byte free."""
    with contextlib.suppress(OSError), open(disk / "filler", "wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 16))
    with contextlib.suppress(OSError), open(disk / "filler", "ab", buffering=0) as file:
        while True:
            file.write(bytes(1))


@pytest.mark.parametrize("trust", EVERY_MODEL)
def test_a_full_disk_ends_the_run_and_space_resumes_it(trust, nodes, tmp_path):
    file, whole = written(trust, tmp_path, LONG_ROUNDS)
    out = nodes.disk / trust
    process = nodes.play(file, out)
    until(lambda: any(out.glob("checkpoints/*.npz")), process)
    fill(nodes.disk)
    code, said = ended(process)
    assert code == 3
    assert "No space left on device" in said and f"raydp-sim resume {out}" in said
    assert ended(nodes.resume(out))[0] == 3  # there is none yet
    (nodes.disk / "filler").unlink()
    assert ended(nodes.resume(out))[0] == 0
    assert_identical(whole, out)


@pytest.mark.parametrize("trust", EVERY_MODEL)
def test_a_run_goes_on_at_a_head_that_was_restarted(trust, nodes, tmp_path):
    """The driver is on another node and lives; it ends and says how to go on."""
    file, whole = written(trust, tmp_path, LONG_ROUNDS)
    out = tmp_path / "made"
    process = nodes.play(file, out, place=1)
    until(lambda: any(out.glob("checkpoints/*.npz")), process)
    nodes.lose(0)
    code, said = ended(process)
    assert code == 3 and f"raydp-sim resume {out}" in said
    finish(nodes, out, code, place=1)
    check_resumed(out)
    assert_identical(whole, out)


@pytest.mark.long
def test_a_run_goes_on_after_its_driver_was_lost_with_the_head(nodes, tmp_path):
    """As when the machine is restarted that both are on."""
    file, whole = written("shuffle", tmp_path, LONG_ROUNDS)
    out = tmp_path / "made"
    process = nodes.play(file, out)
    until(lambda: any(out.glob("checkpoints/*.npz")), process)
    nodes.lose(0)
    assert ended(process)[0] == -signal.SIGKILL
    finish(nodes, out, 3)
    check_resumed(out)
    assert_identical(whole, out)


def check_resumed(out):
    """Make sure that it was not played from its beginning."""
    log = (out / "log.txt").read_text()
    assert "resumed at" in log and "resumed at repetition 0, release 0\n" not in log
