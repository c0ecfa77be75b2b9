"""Datasets that LEAF's scripts wrote: FEMNIST, Shakespeare and its synthetic one, with its clients and test examples.

Caldas et al., "LEAF: a benchmark for federated settings", 2018, arXiv:1812.01097. `dataset.path` is the folder `data`
of one of LEAF's datasets, as its script `preprocess.sh` leaves it. Each user is a person (`federation=subject`); test
examples keep their user, who may have none in training where LEAF has split by user.

FEMNIST: images of 28x28, 62 classes (digits, capitals, small letters). Shakespeare: 80 characters, and the class is the
next one; the alphabet is LEAF's 80 letters. Synthetic: rows of numbers and whatever classes there are.
"""

import os
import string
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from fedexp.data import leaf
from fedexp.parts import Arrays, ConfigError, Data, Dataset, Facts, Split, find_user_path

SIDE = 28
CHARACTERS = (*string.digits, *string.ascii_uppercase, *string.ascii_lowercase)


class Leaf(Dataset):
    """`name` is LEAF's name of the dataset."""

    path: Path
    name: Literal["femnist", "shakespeare", "synthetic"] = "femnist"

    def facts(self, directory: Path) -> Facts:
        arrays = self._arrays(directory)
        subjects, texts = len(np.unique(arrays["user_train"])), self.name == "shakespeare"
        classes, shape = len(self._classes(arrays)), self._shape(arrays)
        return Facts(shape, classes, len(arrays["y_train"]), subjects, vocabulary=len(leaf.LETTERS) if texts else 0)

    def require(self, directory: Path) -> None:
        leaf.files(self._folder(directory))

    def verify(self, directory: Path) -> list[str]:
        facts, folder = self.facts(directory), self._folder(directory)
        summary = f"{facts.train_size:,} training examples of {facts.subjects:,} users, {facts.classes} classes"
        return [f"{folder} holds {summary} (LEAF publishes no checksums)"]

    def download(self, directory: Path) -> None:
        raise ConfigError(
            "dataset=leaf has no source to download from: make the files with LEAF's preprocess.sh, and set "
            "dataset.path=..."
        )

    def load(self, directory: Path, seed: int) -> Data:
        arrays = self._arrays(directory)
        train, test = (self._split(arrays, part) for part in leaf.PARTS)
        letters = tuple(leaf.LETTERS) if self.name == "shakespeare" else ()
        return Data(train, test, self._classes(arrays), vocabulary=letters)

    def _split(self, arrays: Arrays, part: str) -> Split:
        x = torch.from_numpy(arrays[f"x_{part}"])
        return Split(
            x.view(len(x), *self._shape(arrays)),
            torch.from_numpy(arrays[f"y_{part}"]),
            torch.from_numpy(arrays[f"user_{part}"]),
        )

    def _shape(self, arrays: Arrays) -> tuple[int, ...]:
        return (1, SIDE, SIDE) if self.name == "femnist" else arrays["x_train"].shape[1:]

    def _classes(self, arrays: Arrays) -> tuple[str, ...]:
        if self.name == "shakespeare":
            return tuple(letter.replace("\n", r"\n") for letter in leaf.LETTERS)
        if self.name == "femnist":
            return CHARACTERS
        return tuple(map(str, range(max(2, int(arrays["y_train"].max()) + 1))))

    def _folder(self, directory: Path) -> Path:
        folder = find_user_path(self.path, directory, os.path.isdir)
        if folder is None:
            raise ConfigError(f"dataset.path must be a folder, but there is no {self.path} here or in {directory}")
        return folder

    def _arrays(self, directory: Path) -> Arrays:
        """The examples, checked: of the shape and the classes that the name promises."""
        texts = self.name == "shakespeare"
        readers = (leaf.letters, leaf.letter) if texts else (leaf.numbers, leaf.labels)
        folder = self._folder(directory)
        arrays = leaf.arrays(folder, self.name, *readers)
        width = arrays["x_train"].shape[1]
        if self.name == "femnist" and width != SIDE * SIDE:
            raise ConfigError(f"images of femnist in {folder} must have {SIDE * SIDE} pixels, got {width}")
        if arrays["x_test"].shape[1] != width:
            raise ConfigError(
                f"test examples in {folder} must have {width} entries like the training ones, got "
                f"{arrays['x_test'].shape[1]}"
            )
        classes = len(self._classes(arrays))
        most = max(int(arrays[f"y_{part}"].max()) for part in leaf.PARTS)
        if most >= classes:
            raise ConfigError(f"labels in {folder} must be below {classes}, got {most}")
        return arrays
