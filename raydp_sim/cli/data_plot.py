"""The picture of `raydp-sim data --plot`."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raydp_sim.errors import bad_field
from raydp_sim.metrics.label_panels import draw_imbalance, draw_labels


def draw(counts: NDArray[np.int64], path: Path) -> None:
    """Draw who holds which labels.

    Args:
        counts: samples by client and class.
        path: of the picture.

    Raises:
        InputError: when it cannot be written.
    """
    # Matplotlib is slow to import and only needed here.
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(
        1, 2, figsize=(12, 4.4), layout="constrained", width_ratios=(2, 1)
    )
    draw_labels(left, counts)
    draw_imbalance(right, counts)
    try:
        figure.savefig(path, dpi=130)
    except (OSError, ValueError) as error:
        raise bad_field("--plot", str(path), f"it cannot be written: {error}") from None
    finally:
        plt.close(figure)
