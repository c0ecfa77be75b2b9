"""What a dataset is to the rest of the program: facts known before loading, and tensors after it.

Legend: S examples, K classes.
"""

import hashlib
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from fedexp.core.part import Part
from fedexp.data.tables.encoding import Column
from fedexp.data.tokens import TextFormat

Targets = Literal["class", "labels", "numbers", "tokens"]
TARGET_NAMES: dict[Targets, str] = {"class": "classes", "labels": "labels", "numbers": "numbers", "tokens": "tokens"}

IGNORED = -100  # in place of a token that is not to be predicted, such as padding; PyTorch's number for it
_SAMPLED = 512  # examples of a split that its digest reads


@dataclass(frozen=True)
class Facts:
    """What can be said of a dataset before it is loaded.

    `shape` is the shape of one example: `(channels, height, width)` for images, `(channels, length)` for windows of a
    signal, `(features,)` for tables, `(length,)` for text. `targets` says what is to be predicted of it: one of K
    classes, which of K labels it has, K numbers, or for each of its tokens the next of K.
    """

    shape: tuple[int, ...]
    classes: int  # K: how many numbers a model gives for an example, or for a token of it
    train_size: int
    subjects: int | None = None  # people (or devices) in the training split; None: not a natural federation
    targets: Targets = "class"
    vocabulary: int = 0  # of text: examples are int64 numbers of tokens below this; 0: they are no text

    @property
    def outputs(self) -> tuple[int, ...]:
        """The shape of what a model gives for one example: `(K,)`, or `(length, K)` where tokens are predicted."""
        return (*self.shape, self.classes) if self.targets == "tokens" else (self.classes,)


@dataclass(frozen=True)
class Split:
    """Examples on one device: `x [S, *shape]` and their targets `y`.

    `x` is uint8 (images), float32, or int64 (numbers of tokens). `y` is int64 `[S]` (classes), float32 `[S, K]` (labels
    as 0 or 1, or numbers) or int64 `[S, *shape]` (next tokens; those that are `IGNORED` do not count). `subject [S]`
    int64 says whose each example is, with the same numbers in both splits; None: nobody's.
    """

    x: torch.Tensor
    y: torch.Tensor
    subject: torch.Tensor | None = None

    @property
    def labels(self) -> np.ndarray:
        """The class of every example, int64 `[S]`; 0 for all where targets are no classes."""
        return self.y.numpy() if self.y.dim() == 1 else np.zeros(len(self.y), dtype=np.int64)


def split_by_mask(
    test: np.ndarray, x: np.ndarray, y: np.ndarray, subject: np.ndarray | None = None
) -> tuple[Split, Split]:
    """The training and the test examples of arrays `[S, ...]`; the mask `test [S]` marks those for testing."""

    def part(mask: np.ndarray) -> Split:
        subjects = None if subject is None else torch.from_numpy(subject[mask])
        return Split(torch.from_numpy(x[mask]), torch.from_numpy(y[mask]), subjects)

    return part(~test), part(test)


@dataclass(frozen=True)
class Data:
    """A loaded dataset. A batch is `(x.float() / scale - mean) / std`, per channel (dimension 1).

    What somebody needs who has the trained model and other examples: `columns` say how the columns of a table became
    `x`, `target_columns` how its numbers became `y`, `text` how a text is cut into tokens, and `vocabulary` which token
    each number stands for.
    """

    train: Split
    test: Split
    class_names: tuple[str, ...]
    scale: float = 1.0  # 255 for uint8 images
    mean: tuple[float, ...] = (0.0,)  # one number, or one a channel
    std: tuple[float, ...] = (1.0,)
    groups: np.ndarray | None = None  # int64 [S], which training examples follow one rule, where that is known
    columns: tuple[Column, ...] = ()
    target_columns: tuple[Column, ...] = ()
    text: TextFormat | None = None
    vocabulary: tuple[str, ...] = ()
    subject_names: tuple[str, ...] | None = None  # by the numbers of `Split.subject`, where these people have names
    doubts: tuple[str, ...] = ()  # sentences for the first lines of a run: what may not be what the user means

    def sha256(self) -> str:
        """Digest of all labels, of evenly spaced examples and of how they are normalised.

        Not all examples are read: hashing those of CIFAR-10 would take longer than a round of training.
        """
        numbers = " ".join(f"{number:.6g}" for number in (self.scale, *self.mean, *self.std))
        digest = hashlib.sha256(f"{' '.join(self.class_names)} {numbers}".encode())
        for split in (self.train, self.test):
            step = max(1, len(split.x) // _SAMPLED)
            for part in (split.y, split.x[::step]):
                values = part.numpy()
                digest.update(f"{values.dtype} {tuple(split.x.shape)}".encode())
                digest.update(values.astype(values.dtype.newbyteorder("<")).tobytes())
        return digest.hexdigest()


class Dataset(Part):
    """Where examples come from. `directory` is the data root (`data_dir`); files lie in a folder below it."""

    shared_samples = ""  # what its training examples share with each other, in words, so that none is new to a model

    @property
    def subject_option(self) -> str:
        """The option, as typed by the user, that says which subject each example is from; empty if not set."""
        return ""

    def leaks(self) -> str:
        """What a promise of privacy does not cover, as "nor are ...": what examples became by a look at all of them."""
        return ""

    @abstractmethod
    def facts(self, directory: Path) -> Facts:
        """Shape, classes and sizes, without reading the examples. Raises ConfigError like `require`."""
        raise NotImplementedError

    def require(self, directory: Path) -> None:
        """Raises ConfigError when a needed file is absent or has the wrong size: names it, its checksum and the cure.

        Cheap: looks at names and sizes only. `verify` reads the files.
        """

    def refuse_subjects(self, directory: Path, clients: int) -> None:
        """Raises ConfigError where a number of subjects does nothing, but is not the default, `scenario.clients`."""

    def verify(self, directory: Path) -> list[str]:
        """Checks every file against its checksum: a line for each correct file; raises ConfigError otherwise."""
        return []

    def download(self, directory: Path) -> None:
        """Fetches the files: to a temporary name, verified, then renamed. ConfigError where there is no source."""

    @abstractmethod
    def load(self, directory: Path, seed: int) -> Data:
        """Reads the examples (CPU tensors). `seed` matters only to generated data."""
        raise NotImplementedError
