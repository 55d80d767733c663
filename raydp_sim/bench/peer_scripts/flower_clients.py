"""What Flower's workers do: a module of its own, so that they import it once and for all."""

import functools
import os

import numpy as np
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

WORKLOAD = "PEER_WORKLOAD"  # clients, cohort, samples of each, pixels, classes
RATE = 0.001

client_app = ClientApp()


@functools.cache
def samples() -> tuple[np.ndarray, np.ndarray]:
    """Return the pool of which each client holds as many samples as the next."""
    clients, _, points, pixels, classes = (int(each) for each in os.environ[WORKLOAD].split())
    rng = np.random.default_rng(1)
    pool = rng.random((clients, points, pixels), np.float32)
    return pool, rng.integers(0, classes, (clients, points))


@client_app.train()
def train(message: Message, context: Context) -> Message:
    """Take one step of softmax regression on all samples of a client."""
    features, labels = samples()
    mine = int(context.node_config["partition-id"])
    x, y = features[mine], labels[mine]
    weight, bias = message.content["arrays"].to_numpy_ndarrays()
    z = x @ weight.T + bias
    z -= z.max(axis=1, keepdims=True)
    np.exp(z, out=z)
    z /= z.sum(axis=1, keepdims=True)
    z[np.arange(len(y)), y] -= 1.0
    z *= np.float32(RATE / len(y))
    made = ArrayRecord([weight - z.T @ x, bias - z.sum(axis=0)])
    counted = MetricRecord({"num-examples": len(y)})
    return Message(content=RecordDict({"arrays": made, "metrics": counted}), reply_to=message)
