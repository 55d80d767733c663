"""The workload in Flower: its simulation runtime on Ray, two workers, clients in NumPy.

Each client takes one step on all of its samples and sends the model back; FedAvg averages them.
NumPy is the least that a client of Flower can do with. Samples are made once in each worker. The
rounds are those of `FedAvg.start`, without evaluation.
"""

import json
import logging
import os
import sys
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

import numpy as np
from flower_clients import WORKLOAD, client_app
from flwr.app import ArrayRecord, Context, Message
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

CLIENTS, COHORT, _, PIXELS, CLASSES = (int(each) for each in sys.argv[1:6])

server_app = ServerApp()


class Checked(FedAvg):
    """FedAvg that takes no failure for an answer; as it stands it would average the others."""

    def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
        """Average the models of the whole cohort."""
        came = list(replies)
        wrong = [reply for reply in came if reply.has_error()]
        if wrong or len(came) != COHORT:
            raise RuntimeError(f"{len(came)} clients answered, {len(wrong)} with an error")
        return super().aggregate_train(server_round, came)


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    """Play as many rounds as asked for, until nobody asks any more."""
    weight = np.zeros((CLASSES, PIXELS), np.float32)
    arrays = ArrayRecord([weight, np.zeros(CLASSES, np.float32)])
    strategy = Checked(
        fraction_train=COHORT / CLIENTS,
        fraction_evaluate=0.0,
        min_train_nodes=COHORT,
        min_available_nodes=CLIENTS,
    )
    _answer({name: version(name) for name in ("flwr", "ray", "numpy")})
    for line in sys.stdin:
        rounds = int(line)
        arrays = strategy.start(grid=grid, initial_arrays=arrays, num_rounds=rounds).arrays
        _answer({"rounds": rounds})


def _answer(content: dict[str, Any]) -> None:
    os.write(_OUT, (json.dumps(content) + "\n").encode())


if __name__ == "__main__":
    # What is printed by others does not mix with the answers.
    _OUT = os.dup(1)
    os.dup2(2, 1)
    os.environ[WORKLOAD] = " ".join(sys.argv[1:6])  # workers inherit it
    logging.disable(logging.INFO)
    run_simulation(
        server_app=server_app,
        client_app=client_app,
        num_supernodes=CLIENTS,
        backend_config={
            "init_args": {"address": "local", "num_cpus": 2, "include_dashboard": False},
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        },
    )
