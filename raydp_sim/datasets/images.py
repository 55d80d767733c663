"""Labelled images from IDX files in a folder of the user's."""

import os
from pathlib import Path
from typing import ClassVar

from raydp_sim.datasets.idx import NAMES, Idx, read_idx
from raydp_sim.datasets.pooled import Pool, PooledData
from raydp_sim.errors import InputError, bad_field

_FIELD = "population.data.root"
_VARIABLE = "RAYDP_SIM_DATA"


class Images(PooledData):
    """Images and labels from four IDX files, gzipped or not, of any such data set (EMNIST, KMNIST).

    They are `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`, `t10k-images-idx3-ubyte` and
    `t10k-labels-idx1-ubyte`, with or without `.gz`. Images are held as bytes, once in a process.

    Fields:
        root: the folder with the files, or with a folder that has the name of the data set. A
            relative path starts at the scenario file's folder; unless given it is what the
            environment variable RAYDP_SIM_DATA says.
    """

    kind: ClassVar[str] = "images"
    # Where below the root the files may be, besides the root itself.
    folder: ClassVar[str] = ""
    remedy: ClassVar[str] = (
        "give the folder that has them, or kind: synthetic-digits, which needs no files"
    )
    root: str | None = None

    def located(self, folder: Path) -> "PooledData":
        """Anchor a relative path at the scenario file's folder; pin what the environment says."""
        if self.root is not None:
            return self._again(self._clients, root=str(folder / self.root))
        place = os.environ.get(_VARIABLE)
        return self._again(self._clients, root=str(Path(place).resolve())) if place else self

    def train(self) -> Pool:
        """Return the training images."""
        self.checked()
        return Pool(*(read.array for read in self._files()[:2]))

    def tested(self) -> Pool:
        """Return the test images."""
        self.checked()
        return Pool(*(read.array for read in self._files()[2:]))

    def described(self) -> str:
        """Say which files were read."""
        return f"{self.kind} from {self._place()}; {self.checked()}"

    def checked(self) -> str:
        """Say what is known of the files.

        Raises:
            InputError: they are not what the kind says.
        """
        return "its files are well-formed"

    def _place(self) -> Path:
        """Return the folder that holds the files."""
        root = self.root or os.environ.get(_VARIABLE)
        if not root:
            remedy = f"it is not given, and {_VARIABLE} is not set; {self.remedy}"
            raise InputError(f"{_FIELD} is missing; {remedy}")
        places = [Path(root, self.folder), Path(root)] if self.folder else [Path(root)]
        for place in places:
            if any(_file(place, name) for name in NAMES):
                return place
        looked = " and ".join(str(place) for place in places)
        wrong = f"there is no {NAMES[0]} or {NAMES[0]}.gz in {looked}"
        if not Path(root).is_dir():
            wrong = "there is no such folder"
        raise bad_field(_FIELD, root, f"{wrong}; {self.remedy}")

    def _files(self) -> tuple[Idx, ...]:
        place = self._place()
        found = tuple(self._read(place, name) for name in NAMES)
        for images, labels, name in (
            (found[0], found[1], NAMES[0]),
            (found[2], found[3], NAMES[2]),
        ):
            if images.array.ndim < 2 or labels.array.ndim != 1:
                shape = f"images are {images.array.shape} and labels {labels.array.shape}"
                raise bad_field(_FIELD, str(place), f"{name}: {shape}; labels must be one a sample")
            if len(images.array) != len(labels.array) or not len(labels.array):
                counts = f"{len(images.array):,} images and {len(labels.array):,} labels"
                raise bad_field(_FIELD, str(place), f"{name}: there are {counts}; {self.remedy}")
        if found[0].array.shape[1:] != found[2].array.shape[1:]:
            shapes = f"{found[0].array.shape[1:]} and {found[2].array.shape[1:]}"
            raise bad_field(_FIELD, str(place), f"images for training and test differ: {shapes}")
        return found

    def _read(self, place: Path, name: str) -> Idx:
        path = _file(place, name)
        if path is None:
            wrong = f"there is no {name} or {name}.gz in {place}"
            raise bad_field(_FIELD, self.root or str(place), f"{wrong}; {self.remedy}")
        try:
            return read_idx(path.resolve())
        except OSError as error:
            raise bad_field(_FIELD, str(path), f"it cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise bad_field(_FIELD, str(path), f"{error}; {self.remedy}") from None


def _file(place: Path, name: str) -> Path | None:
    return next((path for end in ("", ".gz") if (path := place / f"{name}{end}").is_file()), None)
