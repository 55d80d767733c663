"""The workload in pfl-research: two processes of PyTorch on the CPU, one thread each.

As its guide to fast simulations says: all data in memory as `Dataset`, processes that share the
cohort by torch.distributed, no evaluation. Each client takes one step of softmax regression on all
of its samples; the sum of the differences is all-reduced and averaged.
"""

import json
import os
import socket
import subprocess
import sys
from importlib.metadata import version
from typing import Any

CLIENTS, COHORT, POINTS, PIXELS, CLASSES = (int(each) for each in sys.argv[1:6])
RATE = 0.001


def _answer(content: dict[str, Any]) -> None:
    os.write(_OUT, (json.dumps(content) + "\n").encode())


def _free_port() -> int:
    with socket.socket() as any_port:
        any_port.bind(("localhost", 0))
        return int(any_port.getsockname()[1])


def main() -> None:
    """Train until nobody asks for more; the first of the two processes listens."""
    import numpy as np
    import torch
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.callback.base import TrainingProcessCallback
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
    from pfl.metrics import Metrics
    from pfl.model.pytorch import PyTorchModel

    torch.set_num_threads(1)
    np.random.seed(1)  # noqa: NPY002  # pfl draws from it; all processes draw the same cohorts
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    features = torch.from_numpy(rng.random((CLIENTS, POINTS, PIXELS), np.float32))
    labels = torch.from_numpy(rng.integers(0, CLASSES, (CLIENTS, POINTS)))

    class Softmax(torch.nn.Linear):
        """Softmax regression, as pfl wants a model to be."""

        def loss(self, x: Any, y: Any) -> Any:
            """Return the mean loss of samples."""
            return torch.nn.functional.cross_entropy(self(x), y)

        def metrics(self, x: Any, y: Any) -> dict[str, Any]:
            """Return nothing: nothing is evaluated."""
            return {}

    class Turns(TrainingProcessCallback):
        """Waits between segments until it is asked for the next."""

        def __init__(self) -> None:
            self.left = 0

        def on_train_begin(self, *, model: Any) -> Any:
            """Say that all is ready."""
            _answer({name: version(name) for name in ("pfl", "torch", "numpy")})
            self._wait()
            return Metrics()

        def after_central_iteration(
            self, aggregate_metrics: Any, model: Any, *, central_iteration: int
        ) -> tuple[bool, Any]:
            """Count a round."""
            self.left -= 1
            if self.left == 0:
                _answer({"rounds": self.rounds})
                self._wait()
            return False, Metrics()

        def _wait(self) -> None:
            line = sys.stdin.readline()
            if not line:
                other.kill()
                os._exit(0)
            self.rounds = self.left = int(line)

    first = os.environ["PFL_WORKER_RANK"] == "0"
    sampler = get_user_sampler("minimize_reuse", list(range(CLIENTS)))
    users = [Dataset((features[each], labels[each])) for each in range(CLIENTS)]
    data = FederatedDataset(users.__getitem__, sampler)
    module = Softmax(PIXELS, CLASSES)
    torch.nn.init.zeros_(module.weight)
    torch.nn.init.zeros_(module.bias)
    model = PyTorchModel(module, torch.optim.SGD, torch.optim.SGD(module.parameters(), 1.0))
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=10**9,
            evaluation_frequency=10**9,
            train_cohort_size=COHORT,
            val_cohort_size=None,
        ),
        SimulatedBackend(training_data=data, val_data=data),
        model,
        NNTrainHyperParams(local_num_epochs=1, local_learning_rate=RATE, local_batch_size=None),
        NNEvalHyperParams(local_batch_size=None),
        callbacks=[Turns()] if first else [],
        send_metrics_to_platform=False,
    )


if __name__ == "__main__":
    # What is printed by others does not mix with the answers.
    _OUT = os.dup(1)
    os.dup2(2, 1)
    os.environ["OMP_NUM_THREADS"] = "1"
    if "PFL_WORKER_RANK" not in os.environ:
        os.environ["PFL_WORKER_ADDRESSES"] = f"localhost:{_free_port()},localhost:{_free_port()}"
        second = os.environ | {"PFL_WORKER_RANK": "1"}
        other = subprocess.Popen([sys.executable, *sys.argv], stdin=subprocess.DEVNULL, env=second)
        os.environ["PFL_WORKER_RANK"] = "0"
    main()
