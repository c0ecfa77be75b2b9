"""CIFAR-10: 50,000 + 10,000 colour images of 32x32 pixels in ten classes.

Krizhevsky, "Learning multiple layers of features from tiny images", technical report, University of Toronto,
2009. The python version (pickles) in `cifar-10-batches-py/`; the unpickler makes arrays and nothing else.
"""

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fedexp.core.errors import ConfigError
from fedexp.data import vision
from fedexp.parts.dataset.normalising import Normalise, Published
from fedexp.parts.dataset.torchvision import ImageCollection

BATCH = 10_000
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
DIGESTS = {  # the training batches, then the test batch
    "cifar-10-batches-py/data_batch_1": "c99cafc152244af753f735de768cd75f",
    "cifar-10-batches-py/data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "cifar-10-batches-py/data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "cifar-10-batches-py/data_batch_4": "634d18415352ddfa80567beed471001a",
    "cifar-10-batches-py/data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    "cifar-10-batches-py/test_batch": "40351d587109b95175f43aff81a1287e",
}


class Cifar10(ImageCollection):
    """Reads the published files of CIFAR-10."""

    published: ClassVar[Published] = {
        "standard": ((0.4734,), (0.2516,)),
        "per_channel": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    }
    normalise: Normalise = "per_channel"

    @property
    def collection(self) -> vision.Collection:
        return replace(vision.COLLECTIONS["CIFAR10", None], option="cifar10", digests=DIGESTS)

    def read(self, directory: Path) -> tuple[list[np.ndarray], tuple[str, ...]]:
        files = vision.compare_digests(self.collection, directory)
        *train, test = (_read(path, vision.download_cure(self.collection)) for path in files)
        images, labels = (np.concatenate(parts) for parts in zip(*train, strict=True))
        return [images, labels, *test], CLASSES


def _read(path: Path, cure: str) -> tuple[np.ndarray, np.ndarray]:
    """Images `[10000, 3, 32, 32]` and labels `[10000]` of one file."""
    try:
        with path.open("rb") as file:
            batch = ArraysOnly(file, encoding="bytes").load()
        images, labels = batch[b"data"], np.asarray(batch[b"labels"], np.int64)
        if images.shape != (BATCH, 3072) or images.dtype != np.uint8 or labels.shape != (BATCH,):
            raise ValueError(f"{images.dtype} images {images.shape} and labels {labels.shape}")
    except (pickle.UnpicklingError, EOFError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise ConfigError(f"{path} is not a batch of CIFAR-10: {error}; {cure}") from None
    return images.reshape(-1, 3, 32, 32), labels


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
