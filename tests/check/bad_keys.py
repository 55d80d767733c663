"""Cascades that break one promise about their keys each."""

from typing import ClassVar

import numpy as np

from raydp_sim.mechanisms.hadamard_cascade import HadamardCascade
from raydp_sim.mechanisms.leveled import Released
from raydp_sim.mechanisms.parts.hadamard_sign import HadamardSign
from raydp_sim.random import Stream

EXAMPLE = {"epsilon_local": 1.0, "finer": (4.0, 2.5), "categories": 5}


class _Cascade(HadamardCascade):
    examples: ClassVar = (EXAMPLE,)


class OtherKeysTheSecondTime(_Cascade):
    kind: ClassVar[str] = "other-keys"

    def keys(self, stream):
        return super().keys(Stream(99).clients(stream.ids))


class KeysOfTheValue(_Cascade):
    """The noise moves from the report into the key of the first level, where it names the value."""

    kind: ClassVar[str] = "keys-of-the-value"

    def released(self, values, stream):
        payload, keys = super().released(values, stream)
        keys[:, 0] ^= (values[:, 0] > 0).astype(np.uint8)
        return Released(payload, keys)

    def opened(self, payload, keys, level):
        return super().opened(payload, keys if level else keys & 0, level)


class SaysLessThanItLoses(_Cascade):
    """The readers of level 1 are told that they see what those of level 2 do."""

    kind: ClassVar[str] = "says-less"

    def event_at(self, level):
        return super().event_at(max(1, level) + (level == 1))


class WrongFlips(_Cascade):
    """Level 0 takes its flips for rarer than they are, and decodes and states by that."""

    kind: ClassVar[str] = "wrong-flips"

    def view(self, level):
        flip = self.flips[level] * (2.0 if level == 0 else 1.0)
        return HadamardSign(self.categories, 1.0 - flip, flip)


class WrongView(_Cascade):
    """Level 1 decodes as if it were level 0."""

    kind: ClassVar[str] = "wrong-view"

    def view(self, level):
        right = super().view(level)
        if level != 1:
            return right

        class Mixed(HadamardSign):
            def decode(self, counts):
                return super().decode(counts) * 0.5

        return Mixed(right.categories, right.up, right.down)


class KeyThatShowsMore(_Cascade):
    """Where the sign was not flipped at level 0, the key of level 1 is always 0."""

    kind: ClassVar[str] = "shows-more"

    def released(self, values, stream):
        payload, keys = super().released(values, stream)
        b = HadamardSign(self.categories, 1.0, 0.0).laws(values)[0]
        truth = b[np.arange(len(values)), payload[:, 0] | 1] > 0
        flipped = (payload[:, 0] & 1 == 1) != truth
        keys[:, 1] = flipped
        return Released(payload, keys)
