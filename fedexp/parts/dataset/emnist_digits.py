"""EMNIST Digits: 240,000 + 40,000 handwritten digits of 28x28 grey pixels, balanced.

Cohen, Afshar, Tapson, van Schaik, "EMNIST: an extension of MNIST to handwritten letters", 2017,
arXiv:1702.05373. Files in torchvision's layout, below `EMNIST/raw/`, compressed or not. They hold each image
transposed, which is undone here. A checksum is published only for the whole archive (`gzip.zip`): it is compared at the
download; the single files are checked by their sizes, headers and gzip's own CRC-32.
"""

import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedexp.core.errors import ConfigError
from fedexp.core.files import making, publish
from fedexp.data import idx
from fedexp.data.download import fetch, has_md5
from fedexp.data.store import cure
from fedexp.parts.dataset.contract import Data, Dataset, Facts
from fedexp.parts.dataset.mnist import split_of

RAW = "EMNIST/raw"
ARCHIVE = "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip"
ARCHIVE_MD5 = "58c8d27c78d21e728a6bc7b3cc06412e"
SIZES = {"train": 240_000, "test": 40_000}
CURE = f"from gzip.zip, MD5 {ARCHIVE_MD5}; {cure('emnist_digits', 'EMNIST')}"


@dataclass(frozen=True, kw_only=True)
class EmnistDigits(Dataset):
    """Has no options: the published files are the dataset."""

    @property
    def name(self) -> str:
        return "emnist_digits"

    def facts(self, directory: Path) -> Facts:
        return Facts(shape=(1, 28, 28), classes=10, train_size=SIZES["train"])

    def require(self, directory: Path) -> None:
        for stem, shape in files().items():
            locate(directory, stem, shape)

    def verify(self, directory: Path) -> list[str]:
        lines = []
        for stem, shape in files().items():
            path = locate(directory, stem, shape)
            _read(path, shape)
            lines.append(f"{path.relative_to(directory)} is readable to its end and holds {shape[0]:,} entries")
        return lines

    def download(self, directory: Path) -> None:
        try:
            self.verify(directory)
        except ConfigError:
            _fetch_archive(directory)

    def load(self, directory: Path, seed: int) -> Data:
        images_train, labels_train, images_test, labels_test = (
            _read(locate(directory, stem, shape), shape) for stem, shape in files().items()
        )
        return Data(
            train=split_of(images_train.transpose(0, 2, 1), labels_train),
            test=split_of(images_test.transpose(0, 2, 1), labels_test),
            class_names=tuple("0123456789"),
            scale=255.0,
            mean=(0.5,),
            std=(0.5,),
        )


def files() -> dict[str, tuple[int, ...]]:
    """The four files (without `.gz`) and the shapes of their arrays."""
    table: dict[str, tuple[int, ...]] = {}
    for split, size in SIZES.items():
        table[f"emnist-digits-{split}-images-idx3-ubyte"] = (size, 28, 28)
        table[f"emnist-digits-{split}-labels-idx1-ubyte"] = (size,)
    return table


def locate(directory: Path, stem: str, shape: tuple[int, ...]) -> Path:
    """The file with the right size, as published or decompressed; ConfigError if there is none."""
    size = 4 + 4 * len(shape) + int(np.prod(shape))
    faults = []
    for path in (directory / RAW / f"{stem}.gz", directory / RAW / stem):
        found = idx.plain_size(path) if path.is_file() else None
        if found == size:
            return path
        if found is not None:
            faults.append(f"{path} holds {found:,} bytes, must hold {size:,}")
    raise ConfigError(f"{'; '.join(faults) or f'no {RAW}/{stem}.gz in {directory}'} ({CURE})")


def _read(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    array = idx.parse(path.read_bytes(), path, CURE)
    if array.shape != shape:
        raise ConfigError(f"{path} holds an array of shape {array.shape}, must be {shape} ({CURE})")
    return array


def _fetch_archive(directory: Path) -> None:
    """Extracts the four files from the archive of all of EMNIST (about 560 MB), which is not kept."""
    with making(directory / RAW) as workshop:
        workshop.mkdir()
        archive = workshop / "gzip.zip"
        fetch([ARCHIVE], archive, has_md5(ARCHIVE_MD5))
        (directory / RAW).mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(archive) as source:
            for stem in files():
                part = workshop / f"{stem}.gz"
                with source.open(f"gzip/{part.name}") as packed, part.open("wb") as file:
                    shutil.copyfileobj(packed, file)
                publish(part, directory / RAW / part.name)
