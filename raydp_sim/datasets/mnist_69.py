"""MNIST-69: sixes that are private, and nines turned by 180 degrees that are public."""

from functools import cache
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from raydp_sim.datasets.mnist import Mnist
from raydp_sim.datasets.public_private import Pair, PublicPrivate


class Mnist69(PublicPrivate):
    """Images of sixes, 784 numbers in [0, 1] each; nines turned round are public (004, 4.7.2).

    The first ones of MNIST's training set, in its order.

    Fields:
        root: the folder with MNIST's files, as for `mnist`.
        public: how many nines are public.
    """

    kind: ClassVar[str] = "mnist-69"
    root: str | None = None
    public: Annotated[int, Field(ge=1, le=5949)] = 1000

    def located(self, folder: Path) -> "Mnist69":
        """Anchor a relative path at the scenario file's folder; pin what the environment says."""
        found = Mnist(root=self.root).located(folder)
        assert isinstance(found, Mnist)
        return self.model_copy(update={"root": found.root})

    def pair(self) -> Pair:
        """Read the files; their checksums are compared."""
        return _pair(self.root, self.public)

    @property
    def told(self) -> str:
        """Where the images come from."""
        return f"sixes and nines of {Mnist(root=self.root).described()}"


@cache
def _pair(root: str | None, public: int) -> Pair:
    images, labels, _ = Mnist(root=root).train()
    sixes = images[labels == 6].reshape(-1, 784) / 255.0
    nines = images[labels == 9][:public, ::-1, ::-1].reshape(-1, 784) / 255.0
    shift = "nines turned by 180 degrees, where private records are sixes"
    for part in (sixes, nines):
        part.flags.writeable = False
    return Pair(sixes, nines, shift)
