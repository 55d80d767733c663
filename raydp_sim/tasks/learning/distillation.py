"""How far a personal model is from the common one: the distance of what they predict."""

from typing import NamedTuple

import numpy as np

from raydp_sim.models.base import Floats32
from raydp_sim.models.losses import log_softmax


class Distance(NamedTuple):
    """KL(softmax(common) || softmax(personal)) of each sample.

    Attributes:
        values: the divergences.
        personal: slopes in the personal model's logits.
        common: slopes in the common model's logits.
    """

    values: Floats32
    personal: Floats32
    common: Floats32


def distillation(personal: Floats32, common: Floats32) -> Distance:
    """Return the divergence of the personal model's prediction from the common one's.

    With P, Q the two predictions and l = log Q - log P the slopes are P - Q and Q (l - KL).

    Example:
        >>> logits = np.array([[0.0, 1.0]], np.float32)
        >>> distillation(logits, logits).values.tolist()
        [0.0]
    """
    log_p, log_q = log_softmax(personal), log_softmax(common)
    p, q, ratio = np.exp(log_p), np.exp(log_q), log_q - log_p
    divergence = (q * ratio).sum(axis=-1)
    return Distance(divergence, p - q, q * (ratio - divergence[..., None]))
