"""MNIST: 60,000 + 10,000 handwritten digits of 28x28 grey pixels.

LeCun, Bottou, Bengio, Haffner, "Gradient-based learning applied to document recognition", Proc. IEEE 86(11),
1998. The four original archives, or the same files decompressed, below `MNIST/raw/` (torchvision's layout).
"""

from pathlib import Path

import numpy as np
import torch

from fedexp.data import idx
from fedexp.data.download import fetch, md5_check
from fedexp.data.store import PublishedFile, cure, locate, read_published
from fedexp.parts import ConfigError, Data, Dataset, Facts, Split
from fedexp.parts.dataset.normalising import Normalise, Published, image_data

RAW = "MNIST/raw"
MIRRORS = ("https://ossci-datasets.s3.amazonaws.com/mnist/",)
TRAIN_SIZE = 60_000

# Each row: the file as published, and decompressed. The first that exists is read, so a download replaces a bad one.
FILES = {
    "train_x": (
        PublishedFile(f"{RAW}/train-images-idx3-ubyte.gz", 9_912_422, "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        PublishedFile(f"{RAW}/train-images-idx3-ubyte", 47_040_016, "6bbc9ace898e44ae57da46a324031adb"),
    ),
    "train_y": (
        PublishedFile(f"{RAW}/train-labels-idx1-ubyte.gz", 28_881, "d53e105ee54ea40749a09fcbcd1e9432"),
        PublishedFile(f"{RAW}/train-labels-idx1-ubyte", 60_008, "a25bea736e30d166cdddb491f175f624"),
    ),
    "test_x": (
        PublishedFile(f"{RAW}/t10k-images-idx3-ubyte.gz", 1_648_877, "9fb629c4189551a2d022fa330f9573f3"),
        PublishedFile(f"{RAW}/t10k-images-idx3-ubyte", 7_840_016, "2646ac647ad5339dbf082846283269ad"),
    ),
    "test_y": (
        PublishedFile(f"{RAW}/t10k-labels-idx1-ubyte.gz", 4_542, "ec29112dd5afa0611ce80d1b7f02629c"),
        PublishedFile(f"{RAW}/t10k-labels-idx1-ubyte", 10_008, "27ae3e4e09519cfbb04c329615203637"),
    ),
}
CURE = cure("mnist", "MNIST")
PUBLISHED: Published = {"standard": ((0.1307,), (0.3081,)), "per_channel": ((0.1307,), (0.3081,))}


class Mnist(Dataset):
    """Reads the published files of MNIST."""

    normalise: Normalise = "half"

    def facts(self, directory: Path) -> Facts:
        return Facts(shape=(1, 28, 28), classes=10, train_size=TRAIN_SIZE)

    def require(self, directory: Path) -> None:
        for alternatives in FILES.values():
            locate(directory, alternatives, CURE)

    def verify(self, directory: Path) -> list[str]:
        files = [locate(directory, alternatives, CURE) for alternatives in FILES.values()]
        for spec in files:
            read_published(directory, spec, CURE)
        return [f"{spec} is right" for spec in files]

    def download(self, directory: Path) -> None:
        for alternatives in FILES.values():
            try:
                read_published(directory, locate(directory, alternatives, CURE), CURE)
            except ConfigError:
                archive = alternatives[0]
                urls = [mirror + Path(archive.path).name for mirror in MIRRORS]
                fetch(urls, directory / archive.path, md5_check(archive.md5))

    def load(self, directory: Path, seed: int) -> Data:
        array = {role: _read(directory, alternatives) for role, alternatives in FILES.items()}
        train, test = (image_split(array[f"{part}_x"], array[f"{part}_y"]) for part in ("train", "test"))
        return image_data(train, test, tuple("0123456789"), self.normalise, PUBLISHED)


def _read(directory: Path, alternatives: tuple[PublishedFile, ...]) -> np.ndarray:
    spec = locate(directory, alternatives, CURE)
    return idx.parse(read_published(directory, spec, CURE), directory / spec.path, CURE)


def image_split(images: np.ndarray, labels: np.ndarray) -> Split:
    """Images `[S, 28, 28]` and labels `[S]` as one split with a channel."""
    return Split(torch.from_numpy(images[:, None].copy()), torch.from_numpy(labels.astype(np.int64)))
