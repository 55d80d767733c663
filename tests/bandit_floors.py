"""The floors of `raydp-sim bench bandits`: the same draws in one process, and nothing else.

`reports` plays a shuffled run of two actions client by client: every reward a coin, every noise a
Laplace variable, one permutation a batch, and the sums of both actions; batches grow threefold
until so many clients have reported. `sums` draws what the exact simulation draws of a run of ten
million rounds: for each batch one binomial and two gamma variables of each of three actions. No
learner plans or learns, nobody is accounted for, nothing is placed or made durable.

It serves the benchmark: each line `case clients rounds` on standard input is answered by one line
of JSON; rounds are whole runs.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests import floors  # as a script it has only its own folder

Round = floors.Round


def reports(clients: int) -> Round:
    """Client by client."""
    rng = np.random.default_rng(1)

    def play() -> np.ndarray:
        left, size, total = clients, 3, np.zeros(2)
        while left > 0:
            count = min(size, left)
            slot = np.arange(count) % 2
            chance = np.where(slot == 0, 0.8, 0.6)
            order = rng.permutation(count)
            reward = np.where(rng.random(count) < chance[order], 1.0, -1.0)
            noisy = reward + rng.laplace(0.0, 1.0, count)
            undone = np.empty(count)
            undone[order] = noisy
            total = np.bincount(slot, weights=undone, minlength=2)
            left, size = left - count, 3 * size
        return total

    return play


def sums(clients: int) -> Round:
    """Sums of whole batches, of which so many clients make a run."""
    rng = np.random.default_rng(2)
    sizes = []
    while sum(sizes) < clients:
        sizes.append(max(3, 3 * sum(sizes)))

    def play() -> np.ndarray:
        total = np.zeros(3)
        for size in sizes:
            each = np.full(3, size // 3)
            total = 2.0 * rng.binomial(each, 0.6) - each
            total += rng.standard_gamma(each) - rng.standard_gamma(each)
        return total

    return play


CASES = {"reports": reports, "sums": sums}


if __name__ == "__main__":
    floors.serve(CASES)
