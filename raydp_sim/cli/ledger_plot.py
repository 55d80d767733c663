"""The picture of `raydp-sim ledger --plot`: what clients have spent, and how often they came."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.errors import bad_field
from raydp_sim.privacy.curves.numerics import Array

_BLUE, _ORANGE, _RED = "#0072B2", "#E69F00", "#D55E00"  # Okabe and Ito's
_BINS = 50


def draw(
    epsilons: Array, counts: NDArray[np.int64], planned: float, delta: float, path: Path
) -> None:
    """Draw two histograms over the clients.

    Args:
        epsilons: of each client.
        counts: releases that each client took part in.
        planned: epsilon of a client in every release, drawn as a line.
        delta: that goes with the epsilons.
        path: of the picture.

    Raises:
        InputError: when it cannot be written.
    """
    # Matplotlib is slow to import and only needed here.
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import MaxNLocator

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    worst = float(epsilons.max())
    if np.isfinite(worst):
        top = max(worst, planned if np.isfinite(planned) else 0.0, 1e-12)
        left.hist(epsilons, bins=np.linspace(0.0, top, _BINS + 1), color=_BLUE)
        if np.isfinite(planned):
            left.axvline(planned, color=_RED, ls="--", lw=1.5, label=f"planned: {planned:.4g}")
        left.axvline(worst, color="0.3", ls=":", lw=1.5, label=f"client charged most: {worst:.4g}")
        left.legend(frameon=False, fontsize=9, loc="upper center")
    else:
        left.text(0.5, 0.5, "no guarantee: infinite", ha="center", transform=left.transAxes)
    left.set_xlabel(f"epsilon at delta = {delta:g}")
    left.set_title("What the clients have spent", loc="left")
    right.hist(counts, bins=_whole_bins(int(counts.max())), color=_ORANGE)
    right.set_xlabel("releases that a client took part in")
    right.set_title("How often they took part", loc="left")
    right.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    for axis in (left, right):
        _plain(axis)
    try:
        figure.savefig(path, dpi=130)
    except (OSError, ValueError) as error:
        raise bad_field("--plot", str(path), f"it cannot be written: {error}") from None
    finally:
        plt.close(figure)


def _whole_bins(most: int) -> Array:
    """Return edges around whole numbers, several to a bin where there are many."""
    step = -(-(most + 1) // _BINS)
    return np.arange(0.0, most + step + 1.0, step) - 0.5


def _plain(axis: Any) -> None:
    axis.set_ylabel("clients")
    axis.grid(alpha=0.25, which="major")
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
