"""Two panels about labelled data: who holds which labels, and how much clients differ."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.metrics.panels import BLUE, ORANGE

_SHOWN = 60  # clients that are drawn one by one
_BINS = 40
_NAMED = 20  # classes that are all numbered


def draw_labels(axis: Any, counts: NDArray[np.int64]) -> None:
    """Draw the share of each class among the samples of single clients.

    Args:
        axis: of the panel.
        counts: samples by client and class; of many clients, some spread over all are shown.
    """
    clients, classes = counts.shape
    shown = np.unique(np.linspace(0, clients - 1, min(clients, _SHOWN)).astype(np.int64))
    shares = counts[shown] / np.maximum(1, counts[shown].sum(axis=1, keepdims=True))
    image = axis.imshow(shares.T, aspect="auto", origin="lower", cmap="viridis", vmin=0.0)
    axis.figure.colorbar(image, ax=axis, label="share of the client's samples")
    axis.set_ylabel("class")
    if classes <= _NAMED:
        axis.set_yticks(range(classes))
    few = np.unique(np.linspace(0, len(shown) - 1, min(len(shown), 6)).astype(np.int64))
    axis.set_xticks(few, [f"{shown[place]:,}" for place in few])
    axis.set_xlabel("client" if len(shown) == clients else f"client ({len(shown)} of {clients:,})")
    axis.set_title("Who holds which labels", loc="left")


def draw_imbalance(axis: Any, counts: NDArray[np.int64]) -> None:
    """Draw how far the labels of clients are from those of all, over all clients.

    It is the total variation distance: 0 for a client that holds all classes as they are overall,
    near 1 for one that holds a rare class alone.
    """
    overall = counts.sum(axis=0) / counts.sum()
    shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    distance = 0.5 * np.abs(shares - overall).sum(axis=1)
    axis.hist(distance, bins=np.linspace(0.0, 1.0, _BINS + 1), color=BLUE)
    median = float(np.median(distance))
    axis.axvline(median, color=ORANGE, lw=1.5, label=f"median: {median:.2f}")
    axis.legend(frameon=False, fontsize=9)
    axis.set_xlabel("distance of a client's labels from everyone's")
    axis.set_ylabel("clients")
    axis.set_title("How much clients differ", loc="left")
    axis.spines[["top", "right"]].set_visible(False)
