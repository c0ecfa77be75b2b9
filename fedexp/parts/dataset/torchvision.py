"""Images that torchvision knows by name: MNIST, FashionMNIST, KMNIST, EMNIST, CIFAR10, CIFAR100, SVHN, USPS.

Files lie where torchvision puts them below the data root (`data_dir`) and are never fetched by a run. EMNIST has six
splits and its images are put upright; its letters count from 0. SVHN is without its extra examples.
"""

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch

from fedexp.data import vision
from fedexp.parts import ConfigError, Data, Dataset, Facts, Split
from fedexp.parts.dataset.normalising import Normalise, Published, image_data, leaked_moments, with_test_normalised


class ImageCollection(Dataset):
    """Reads the published files of one of torchvision's collections."""

    published: ClassVar[Published | None] = None  # means and deviations that need not be measured
    normalise: Normalise = "half"
    test_normalise: Normalise | None = None

    @property
    @abstractmethod
    def collection(self) -> vision.Collection:
        """The files, the shape, the classes and the sizes."""

    def facts(self, directory: Path) -> Facts:
        return Facts(self.collection.shape, self.collection.classes, self.collection.sizes[0])

    def require(self, directory: Path) -> None:
        vision.find_files(self.collection, directory)

    def verify(self, directory: Path) -> list[str]:
        return list(vision.verify(self.collection, directory))

    def download(self, directory: Path) -> None:
        try:
            self.verify(directory)
        except ConfigError:
            vision.download(self.collection, directory)

    def leaks(self) -> str:
        return leaked_moments(self.normalise, self.published)

    def load(self, directory: Path, seed: int) -> Data:
        arrays, names = self.read(directory)
        train_x, train_y, test_x, test_y = (torch.from_numpy(array) for array in arrays)
        splits = Split(train_x, train_y), Split(test_x, test_y)
        data = image_data(*splits, names, self.normalise, self.published)
        if self.test_normalise in (None, self.normalise):
            return data
        return with_test_normalised(data, image_data(*splits, names, self.test_normalise, self.published))

    def read(self, directory: Path) -> tuple[list[np.ndarray], tuple[str, ...]]:
        """Training images `[S, C, H, W]` and labels `[S]`, test images and labels, and the names of the classes."""
        return vision.read(self.collection, directory)


class Torchvision(ImageCollection):
    """Only EMNIST takes a `split`."""

    name: Literal["MNIST", "FashionMNIST", "KMNIST", "EMNIST", "CIFAR10", "CIFAR100", "SVHN", "USPS"]
    split: Literal["byclass", "bymerge", "balanced", "letters", "digits", "mnist"] | None = None
    normalise: Normalise = "half"

    def check(self) -> None:
        if (self.name == "EMNIST") != (self.split is not None):
            wanted = f"one of {', '.join(vision.EMNIST_CLASSES)}" if self.split is None else "null"
            raise ConfigError(f"Torchvision.split must be {wanted} for {self.name}, got {self.split or 'null'}")

    @property
    def collection(self) -> vision.Collection:
        return vision.COLLECTIONS[self.name, self.split]
