"""CIFAR-10: 50,000 + 10,000 colour images of 32x32 pixels in ten classes.

Krizhevsky, "Learning multiple layers of features from tiny images", technical report, University of Toronto,
2009. The python version (pickles) in `cifar-10-batches-py/`; the unpickler makes arrays and nothing else.
"""

import io
import pickle
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedexp.data.download import fetch, install_file, md5_check
from fedexp.data.store import PublishedFile, cure, locate, read_published
from fedexp.files.atomic import scratch_path
from fedexp.parts import ConfigError, Data, Dataset, Facts, Split
from fedexp.parts.dataset.normalising import Normalise, Published, image_data

FOLDER = "cifar-10-batches-py"
ARCHIVE = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
ARCHIVE_MD5 = "c58f30108f718f92721af3b95e74349a"
BATCH = 10_000
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
PUBLISHED: Published = {
    "standard": ((0.4734,), (0.2516,)),
    "per_channel": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
}

TRAIN = (
    PublishedFile(f"{FOLDER}/data_batch_1", 31_035_704, "c99cafc152244af753f735de768cd75f"),
    PublishedFile(f"{FOLDER}/data_batch_2", 31_035_320, "d4bba439e000b95fd0a9bffe97cbabec"),
    PublishedFile(f"{FOLDER}/data_batch_3", 31_035_999, "54ebc095f3ab1f0389bbae665268c751"),
    PublishedFile(f"{FOLDER}/data_batch_4", 31_035_696, "634d18415352ddfa80567beed471001a"),
    PublishedFile(f"{FOLDER}/data_batch_5", 31_035_623, "482c414d41f54cd18b22e5b47cb7c3cb"),
)
TEST = (PublishedFile(f"{FOLDER}/test_batch", 31_035_526, "40351d587109b95175f43aff81a1287e"),)
CURE = cure("cifar10", FOLDER)


class Cifar10(Dataset):
    """Reads the published files of CIFAR-10."""

    normalise: Normalise = "per_channel"

    def facts(self, directory: Path) -> Facts:
        return Facts(shape=(3, 32, 32), classes=10, train_size=len(TRAIN) * BATCH)

    def require(self, directory: Path) -> None:
        for spec in TRAIN + TEST:
            locate(directory, [spec], CURE)

    def verify(self, directory: Path) -> list[str]:
        for spec in TRAIN + TEST:
            read_published(directory, locate(directory, [spec], CURE), CURE)
        return [f"{spec} is right" for spec in TRAIN + TEST]

    def download(self, directory: Path) -> None:
        try:
            self.verify(directory)
        except ConfigError:
            _fetch_archive(directory)

    def load(self, directory: Path, seed: int) -> Data:
        self.require(directory)
        return image_data(_split(directory, TRAIN), _split(directory, TEST), CLASSES, self.normalise, PUBLISHED)


def _split(directory: Path, files: tuple[PublishedFile, ...]) -> Split:
    x = torch.empty(len(files) * BATCH, 3, 32, 32, dtype=torch.uint8)
    y = torch.empty(len(files) * BATCH, dtype=torch.int64)
    for number, spec in enumerate(files):
        part = slice(number * BATCH, (number + 1) * BATCH)
        images, labels = _read(directory, spec)
        x[part], y[part] = torch.from_numpy(images).view(-1, 3, 32, 32), torch.from_numpy(labels)
    return Split(x, y)


def _read(directory: Path, spec: PublishedFile) -> tuple[np.ndarray, np.ndarray]:
    """Images `[10000, 3072]` (red, green, blue planes) and labels `[10000]` of one file."""
    raw = read_published(directory, spec, CURE)
    try:
        batch = ArraysOnly(io.BytesIO(raw), encoding="bytes").load()
        images, labels = batch[b"data"], np.asarray(batch[b"labels"], np.int64)
        if images.shape != (BATCH, 3072) or images.dtype != np.uint8 or labels.shape != (BATCH,):
            raise ValueError(f"{images.dtype} images {images.shape} and labels {labels.shape}")
    except (pickle.UnpicklingError, EOFError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise ConfigError(f"{directory / spec.path} is not a batch of CIFAR-10: {error}; {CURE}") from None
    return images, labels


class ArraysOnly(pickle.Unpickler):
    """An unpickler for NumPy arrays and plain containers only; pickles can otherwise run any program."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if module_name in ("numpy.core.multiarray", "numpy._core.multiarray") and global_name == "_reconstruct":
            return np.empty(0).__reduce__()[0]
        if (module_name, global_name) == ("numpy", "ndarray"):
            return np.ndarray
        if (module_name, global_name) == ("numpy", "dtype"):
            return _dtype
        raise pickle.UnpicklingError(f"{module_name}.{global_name} is not allowed")


def _dtype(text: Any, *_: Any) -> np.dtype:
    # The old pickles pass 0 and 1 for align and copy, of which newer NumPy versions warn.
    return np.dtype(text.decode() if isinstance(text, bytes) else text, copy=True)


def _unpack(archive: Path, into: Path) -> None:
    """Unpacks the known files of the archive and no others; older versions of Python 3.11 cannot filter members."""
    (into / FOLDER).mkdir()
    wanted = {spec.path for spec in TRAIN + TEST}
    with tarfile.open(archive) as source:
        for member in source:
            if member.name in wanted and (file := source.extractfile(member)) is not None:
                (into / member.name).write_bytes(file.read())


def _fetch_archive(directory: Path) -> None:
    """Unpacks the archive in a temporary folder, then moves the files with the right checksums; it is not kept."""
    with scratch_path(directory / FOLDER) as scratch:
        scratch.mkdir()
        archive = scratch / "cifar-10-python.tar.gz"
        fetch([ARCHIVE], archive, md5_check(ARCHIVE_MD5))
        _unpack(archive, scratch)
        for spec in TRAIN + TEST:
            install_file(scratch / spec.path, spec, directory)
