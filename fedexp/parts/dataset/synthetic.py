"""Synthetic data: one Gaussian cloud for each class, around random centres.

The centres are standard normal. The noise of each number has the deviation `difficulty` * sqrt(2 d) / 4 for examples of
d numbers, so two centres are about 4 / `difficulty` deviations apart for any d. The best rule mistakes one class for a
given other one with probability about Phi(-2 / `difficulty`): 0 at difficulty 0, 2 % at 1, 16 % at 2. With few numbers
(d < 8) or many classes some centres are closer.
All numbers are divided by sqrt(1 + deviation^2), so they have a variance of about 1. Legend: S examples, K classes.
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import torch

from fedexp.parts import ConfigError, Data, Dataset, Facts, Range, Split, stream

CHUNK = 1 << 20  # numbers drawn at once, to bound the memory


class Synthetic(Dataset):
    """Classes are balanced, and so are the subjects, which differ only in their number and their group.

    With `groups` subject s belongs to group s modulo `groups`, and each group but the first has its own permutation of
    the labels; test examples are from all groups in equal parts.
    """

    shape: tuple[Annotated[int, Range(1)], ...] = (8,)
    classes: Annotated[int, Range(2)] = 10
    train_size: Annotated[int, Range(1)] = 10_000
    test_size: Annotated[int, Range(1)] = 2_000
    difficulty: Annotated[float, Range(0)] = 1.0
    subjects: Annotated[int, Range(1)] | None = None
    groups: Annotated[int, Range(1)] = 1

    def check(self) -> None:
        if not self.shape:
            raise ConfigError("Synthetic.shape must have at least one entry, got []")
        if self.train_size < self.classes:
            raise ConfigError(f"Synthetic.train_size must be >= classes ({self.classes}), got {self.train_size}")
        if self.groups > (self.subjects or 1):
            raise ConfigError(
                f"Synthetic.groups must be at most the number of subjects, got {self.groups} groups of "
                f"{self.subjects or 'no'} subjects; give dataset.subjects"
            )
        if self.subjects is not None and self.train_size < self.subjects:
            raise ConfigError(f"Synthetic.subjects must be <= train_size ({self.train_size}), got {self.subjects}")

    @property
    def subject_option(self) -> str:
        return "" if self.subjects is None else f"dataset.subjects={self.subjects}"

    def facts(self, directory: Path) -> Facts:
        return Facts(self.shape, self.classes, self.train_size, self.subjects)

    def load(self, directory: Path, seed: int) -> Data:
        centres = stream(seed, "synthetic", "centres").standard_normal((self.classes, math.prod(self.shape)))
        train = self._split(centres, self.train_size, seed, "train")
        if self.subjects is not None:
            owner = balanced_numbers(self.train_size, self.subjects, stream(seed, "synthetic", "subjects"))
            train = Split(train.x, train.y, torch.from_numpy(owner))
        test, groups = self._split(centres, self.test_size, seed, "test"), None
        if self.groups > 1:
            assert train.subject is not None
            groups = train.subject.numpy() % self.groups
            test_groups = balanced_numbers(self.test_size, self.groups, stream(seed, "synthetic", "test", "groups"))
            train, test = self._permute_labels(train, groups, seed), self._permute_labels(test, test_groups, seed)
        return Data(train, test, tuple(map(str, range(self.classes))), groups=groups)

    def _permute_labels(self, split: Split, group: np.ndarray, seed: int) -> Split:
        rng = stream(seed, "synthetic", "permutations")
        labels = [np.arange(self.classes), *(derangement(self.classes, rng) for _ in range(self.groups - 1))]
        return replace(split, y=torch.from_numpy(np.stack(labels)[group, split.y.numpy()]))

    def _split(self, centres: np.ndarray, size: int, seed: int, part: str) -> Split:
        y = balanced_numbers(size, self.classes, stream(seed, "synthetic", part, "labels"))
        noise = self.difficulty * math.sqrt(2 * centres.shape[1]) / 4
        x = gaussian_clouds(centres, y, noise, stream(seed, "synthetic", part, "noise"))
        return Split(torch.from_numpy(x).view(size, *self.shape), torch.from_numpy(y))


def derangement(size: int, rng: np.random.Generator) -> np.ndarray:
    """A permutation `[size]` that leaves no entry in its place."""
    order = rng.permutation(size)
    result = np.empty(size, dtype=np.int64)
    result[order] = np.roll(order, 1)
    return result


def balanced_numbers(size: int, kinds: int, rng: np.random.Generator) -> np.ndarray:
    """`[S]` numbers below `kinds` in random order, each equally often (or once more)."""
    return rng.permutation(np.arange(size, dtype=np.int64) % kinds)


def gaussian_clouds(centres: np.ndarray, y: np.ndarray, noise: float, rng: np.random.Generator) -> np.ndarray:
    """Examples `[S, d]`, float32, around their classes' `centres [K, d]`, with labels `y [S]`; about unit variance."""
    scale = 1 / math.sqrt(1 + noise**2)
    scaled = (scale * centres).astype(np.float32)
    x = np.empty((len(y), centres.shape[1]), np.float32)
    rows = max(1, CHUNK // centres.shape[1])
    for begin in range(0, len(y), rows):
        piece = x[begin : begin + rows]
        rng.standard_normal(out=piece, dtype=np.float32)
        piece *= np.float32(scale * noise)
        piece += scaled[y[begin : begin + rows]]
    return x
