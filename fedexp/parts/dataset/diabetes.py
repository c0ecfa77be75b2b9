"""Diabetes: the progress of the disease of 442 patients after a year, from ten measurements; comes with scikit-learn.

Efron, Hastie, Johnstone, Tibshirani, "Least angle regression", Annals of Statistics 32(2), 2004. There is no published
split: every fifth patient in a fixed random order is a test patient, 353 + 89. Measurements are standardised by the
training patients, and so is the target, so errors are in deviations of it (about 77); `target_scale: raw` leaves it.
"""

from pathlib import Path
from typing import Literal

import numpy as np

from fedexp.data.tables.encoding import Column, standardise_with_moments
from fedexp.parts import Arrays, Data, Dataset, Facts, load_or_make, split_by_mask
from fedexp.parts.dataset.digits import held_out_images

TRAIN_SIZE = 353
MEASUREMENTS = ("age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6")


class Diabetes(Dataset):
    """Comes with scikit-learn and needs no files; one number is to be predicted."""

    target_scale: Literal["standard", "raw"] = "standard"

    def leaks(self) -> str:
        return "nor are means and deviations of all training patients"

    def facts(self, directory: Path) -> Facts:
        return Facts(shape=(10,), classes=1, train_size=TRAIN_SIZE, targets="numbers")

    def load(self, directory: Path, seed: int) -> Data:
        arrays = load_or_make("diabetes-1", _read)  # importing scikit-learn takes a second
        test = held_out_images(np.zeros(len(arrays["y"]), np.int64))
        x, *moments = standardise_with_moments(arrays["x"], ~test)
        y, target = arrays["y"][:, None], Column("progression")
        if self.target_scale == "standard":
            y, mean, std = standardise_with_moments(y, ~test)
            target = Column("progression", float(mean[0]), float(std[0]))
        measured = tuple(
            Column(*entries) for entries in zip(MEASUREMENTS, *map(np.ndarray.tolist, moments), strict=True)
        )
        train, held_out = split_by_mask(test, x.astype(np.float32), y.astype(np.float32))
        return Data(train, held_out, (target.name,), columns=measured, target_columns=(target,))


def _read() -> Arrays:
    from sklearn.datasets import load_diabetes

    x, y = load_diabetes(return_X_y=True, scaled=False)
    return {"x": np.asarray(x, np.float64), "y": np.asarray(y, np.float64)}
