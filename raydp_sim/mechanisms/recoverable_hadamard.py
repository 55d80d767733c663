"""Hadamard response whose key opens it: the design in cyclic form, without its row of ones."""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from raydp_sim.mechanisms.parts.additive_key import AdditiveKey
from raydp_sim.mechanisms.parts.heavy_keys import difference_set
from raydp_sim.mechanisms.recoverable import Recoverable
from raydp_sim.privacy.names import hadamard_blocks


class RecoverableHadamard(Recoverable):
    """Send category + key in Z_B x Z_N; the heavy keys are a difference set of block 0.

    Hadamard response (Acharya, Sun & Zhang 2019) cannot be recovered by a key, as Girgis 2024,
    Theorem 7.5.2, has it: the matrix's row of ones puts one output of a block into the sets of all
    its categories, and sum_x Q(y | x) exceeds 1. Here that row is left out: N = 2^m - 1, and the
    likely keys are the zeros of an m-sequence, of which every shift is a row of the rest. As good
    for the public as 'hadamard-response', and exact for who holds the key, whose entropy is at most
    about 2 bits above the least there is, that of 'ldp-rec'.

    B is that of 'hadamard-response'; where it is k or more, the keys are those of 'krr'.
    Probabilities are multiples of 2^-53; the loss is exact for what is drawn and never above
    epsilon_local.

    Fields:
        categories: how many there are, k, 2..1048576; clients hold whole numbers 0..k-1.

    Example:
        >>> response = RecoverableHadamard(epsilon_local=2.0, categories=100)
        >>> response.key.blocks, response.key.period, response.bits
        (4, 31, 7)
    """

    kind: ClassVar[str] = "recoverable-hadamard"
    source: ClassVar[str] = "Acharya, Sun & Zhang 2019, without the row of ones"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 0.5, "categories": 5},
        {"epsilon_local": 1.0, "categories": 10, "dimension": 1},
        {"epsilon_local": 2.0, "categories": 37},
        {"epsilon_local": 4.0, "categories": 6},
    )

    @cached_property
    def key(self) -> AdditiveKey:
        """Elements of Z_B x Z_N, the heavy ones in block 0."""
        epsilon, k = self.need_epsilon(), self.categories
        blocks = hadamard_blocks(epsilon, k)
        if blocks >= k:
            return AdditiveKey(k, k, 1, np.array([0]), epsilon)
        degree = 2
        while blocks * ((1 << degree) - 1) < k:
            degree += 1
        period = (1 << degree) - 1
        return AdditiveKey(k, blocks, period, difference_set(degree), epsilon)
