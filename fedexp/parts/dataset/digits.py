"""The 8x8 handwritten digits that come with scikit-learn: 1,797 images with 17 grey levels.

The test set of Alpaydin and Kaynak, "Optical recognition of handwritten digits", UCI repository, 1998. It has no
published split, so one is fixed here, the same in every experiment: the images are put in the order
of the raw output of NumPy's Philox generator with key 1797 (raw output does not change between NumPy versions),
sorted by class without disturbing that order, and every fifth one is a test image: 1,437 + 360, stratified.
"""

import hashlib
from pathlib import Path

import numpy as np

from fedexp.parts import Arrays, ConfigError, Data, Dataset, Facts, load_or_make, split_by_mask
from fedexp.parts.dataset.normalising import Normalise, Published, image_data

SHA256 = "87ff0c9e40dc7e2c0e34e7257799c2e3f3aec1a016363bb11cad869ec428a826"
SPLIT_KEY = 1797
PUBLISHED: Published = {"standard": ((0.3049,), (0.3757,)), "per_channel": ((0.3049,), (0.3757,))}


class Digits(Dataset):
    """Comes with scikit-learn and needs no files."""

    normalise: Normalise = "standard"

    def facts(self, directory: Path) -> Facts:
        return Facts(shape=(1, 8, 8), classes=10, train_size=1_437)

    def verify(self, directory: Path) -> list[str]:
        arrays = _read()
        digest = hashlib.sha256(arrays["x"].tobytes() + arrays["y"].astype(np.uint8).tobytes()).hexdigest()
        if digest != SHA256:
            raise ConfigError(
                f"the digits of this scikit-learn have SHA-256 {digest}, must have {SHA256}; reinstall it"
            )
        return [f"the digits of scikit-learn ({len(arrays['y']):,} images, SHA-256 {SHA256}) are right"]

    def load(self, directory: Path, seed: int) -> Data:
        arrays = load_or_make("digits-1", _read)  # importing scikit-learn takes a second
        images, labels = arrays["x"], arrays["y"]
        train, test = split_by_mask(held_out_images(labels), images[:, None], labels)
        return image_data(train, test, tuple("0123456789"), self.normalise, PUBLISHED, scale=16.0)


def held_out_images(labels: np.ndarray) -> np.ndarray:
    """Which images `[S]` are test images: a fifth of every class."""
    order = np.argsort(np.random.Philox(key=SPLIT_KEY).random_raw(len(labels)), kind="stable")
    by_class = order[np.argsort(labels[order], kind="stable")]
    held_out = np.zeros(len(labels), bool)
    held_out[by_class[::5]] = True
    return held_out


def _read() -> Arrays:
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return {"x": np.asarray(images).astype(np.uint8).reshape(-1, 8, 8), "y": np.asarray(labels).astype(np.int64)}
