"""Fashion-MNIST: articles of clothing (Xiao, Rasul & Vollgraf 2017)."""

from typing import ClassVar

from raydp_sim.datasets.images import Images
from raydp_sim.errors import bad_field

# MD5 of the gzipped files as published, in the order of idx.NAMES.
_PUBLISHED = (
    "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "25c81989df183df01b3e8a0aad5dffbe",
    "bef4ecab320f06d8554ea6380940ec79",
    "bb300cfdad3c16e7a12a480ee83cd310",
)


class FashionMnist(Images):
    """Fashion-MNIST: 28 x 28 pixels, 10 classes of clothing, in MNIST's form.

    Files with other checksums than the published ones are taken if they are well-formed (other
    splits of the same images are about), and that is said.
    """

    kind: ClassVar[str] = "fashion-mnist"
    folder: ClassVar[str] = "fashion-mnist"
    remedy: ClassVar[str] = (
        "put Fashion-MNIST's four IDX files (train-images-idx3-ubyte.gz and so on, as its authors "
        "publish them) into a folder `fashion-mnist` there, or use kind: synthetic-digits, which "
        "needs no files"
    )

    def checked(self) -> str:
        """Compare the checksums, and the shapes where they differ."""
        files = self._files()
        if tuple(read.packed for read in files) == _PUBLISHED:
            return "checksums are the published ones"
        shape, classes = files[0].array.shape[1:], int(files[1].array.max()) + 1
        if shape != (28, 28) or classes != 10:
            found = f"images of {shape} pixels and {classes} classes are not Fashion-MNIST's"
            raise bad_field("population.data.root", self.root, f"{found}; {self.remedy}")
        return "well-formed, but checksums are not the published ones: perhaps another split"
