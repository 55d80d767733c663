"""The records of the noise-free fixture, as a data set of one's own."""

import numpy as np

from raydp_sim.datasets.public_private import Pair, PublicPrivate

FINAL = {
    "private": (-0.0725939235, 0.0032253869, 0.0699094544),
    "interleaved": (0.2543342863, -0.2790674596, -0.0939922531),
    "priv-pub": (-0.0687444991, -0.0237356835, 0.0420926917),
    "pub-priv": (-0.0662263247, -0.0095886645, 0.0564828079),
}


class Waves(PublicPrivate):
    """Six private records and six public ones of three numbers."""

    def pair(self) -> Pair:
        i, j = np.ogrid[:6, :3]
        return Pair(np.sin(1.0 + i + 2 * j), np.cos(1.0 + 2 * i + j), "cosines, not sines")

    @property
    def told(self) -> str:
        return "waves"


class FewWaves(Waves):
    """The same with two public records."""

    def pair(self) -> Pair:
        found = super().pair()
        return found._replace(public=found.public[:2])


class LongWaves(Waves):
    """The same with public records that are ten times as long."""

    def pair(self) -> Pair:
        found = super().pair()
        return found._replace(public=10.0 * found.public)
