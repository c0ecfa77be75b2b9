"""EMNIST Digits: 240,000 + 40,000 handwritten digits of 28x28 grey pixels, balanced.

Cohen, Afshar, Tapson, van Schaik, "EMNIST: an extension of MNIST to handwritten letters", 2017,
arXiv:1702.05373. Files in torchvision's layout, below `EMNIST/raw/`, compressed or not. They hold each image
transposed, which is undone here. A checksum is published only for the whole archive (`gzip.zip`): it is compared at the
download; the single files are checked by their sizes, headers and gzip's own CRC-32.
"""

import shutil
import zipfile
from pathlib import Path

from fedexp.data import idx
from fedexp.data.download import fetch, md5_check
from fedexp.data.store import cure
from fedexp.files.atomic import publish, scratch_path
from fedexp.parts import ConfigError, Data, Dataset, Facts
from fedexp.parts.dataset.mnist import image_split
from fedexp.parts.dataset.normalising import Normalise, image_data

RAW = "EMNIST/raw"
ARCHIVE = "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip"
ARCHIVE_MD5 = "58c8d27c78d21e728a6bc7b3cc06412e"
SIZES = {"train": 240_000, "test": 40_000}
CURE = f"from gzip.zip, MD5 {ARCHIVE_MD5}; {cure('emnist_digits', 'EMNIST')}"


class EmnistDigits(Dataset):
    """Reads the published files of EMNIST Digits."""

    normalise: Normalise = "half"

    def facts(self, directory: Path) -> Facts:
        return Facts(shape=(1, 28, 28), classes=10, train_size=SIZES["train"])

    def require(self, directory: Path) -> None:
        for stem, shape in files().items():
            idx.find_file(directory, RAW, stem, shape, CURE)

    def verify(self, directory: Path) -> list[str]:
        lines = []
        for stem, shape in files().items():
            path = idx.find_file(directory, RAW, stem, shape, CURE)
            idx.read(path, shape, CURE)
            lines.append(f"{path.relative_to(directory)} is readable to its end and holds {shape[0]:,} entries")
        return lines

    def download(self, directory: Path) -> None:
        try:
            self.verify(directory)
        except ConfigError:
            _fetch_archive(directory)

    def load(self, directory: Path, seed: int) -> Data:
        images_train, labels_train, images_test, labels_test = (
            idx.read(idx.find_file(directory, RAW, stem, shape, CURE), shape, CURE) for stem, shape in files().items()
        )
        train = image_split(images_train.transpose(0, 2, 1), labels_train)
        test = image_split(images_test.transpose(0, 2, 1), labels_test)
        return image_data(train, test, tuple("0123456789"), self.normalise)


def files() -> dict[str, tuple[int, ...]]:
    """The four files (without `.gz`) and the shapes of their arrays."""
    table: dict[str, tuple[int, ...]] = {}
    for split, size in SIZES.items():
        table[f"emnist-digits-{split}-images-idx3-ubyte"] = (size, 28, 28)
        table[f"emnist-digits-{split}-labels-idx1-ubyte"] = (size,)
    return table


def _fetch_archive(directory: Path) -> None:
    """Extracts the four files from the archive of all of EMNIST (about 560 MB), which is not kept."""
    with scratch_path(directory / RAW) as scratch:
        scratch.mkdir()
        archive = scratch / "gzip.zip"
        fetch([ARCHIVE], archive, md5_check(ARCHIVE_MD5))
        (directory / RAW).mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(archive) as source:
            for stem in files():
                part = scratch / f"{stem}.gz"
                with source.open(f"gzip/{part.name}") as packed, part.open("wb") as file:
                    shutil.copyfileobj(packed, file)
                publish(part, directory / RAW / part.name)
