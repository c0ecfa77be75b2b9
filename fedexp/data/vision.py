"""Image datasets of torchvision: their known facts, their files, and reading them.

Files are where torchvision puts them, and its lists say their MD5. Bytes in the idx format are read by `idx`,
compressed or not; of compressed ones the MD5 is compared. All other files are compared with their MD5 before
torchvision opens them, since it unpickles some of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedexp.core.errors import ConfigError, first_line
from fedexp.core.files import making, publish
from fedexp.data import idx
from fedexp.data.store import digest

EMNIST_CLASSES = {"byclass": 62, "bymerge": 47, "balanced": 47, "letters": 26, "digits": 10, "mnist": 10}
EMNIST_SIZES = {
    "byclass": (697_932, 116_323),
    "bymerge": (697_932, 116_323),
    "balanced": (112_800, 18_800),
    "letters": (124_800, 20_800),
    "digits": (240_000, 40_000),
    "mnist": (60_000, 10_000),
}
DIGITS = (1, 28, 28)


@dataclass(frozen=True)
class Collection:
    """The known facts of a dataset: torchvision's class, its split, and its training and test sizes."""

    kind: str
    shape: tuple[int, int, int]
    classes: int
    sizes: tuple[int, int]
    split: str | None = None

    @property
    def is_idx(self) -> bool:
        """Whether its files are in the idx format."""
        return self.shape == DIGITS

    @property
    def words(self) -> str:
        """How the dataset is chosen on the command line."""
        return f"torchvision dataset.name={self.kind}" + (f" dataset.split={self.split}" if self.split else "")


COLLECTIONS = {
    (one.kind, one.split): one
    for one in (
        *(Collection(kind, DIGITS, 10, (60_000, 10_000)) for kind in ("MNIST", "FashionMNIST", "KMNIST")),
        *(Collection("EMNIST", DIGITS, EMNIST_CLASSES[split], sizes, split) for split, sizes in EMNIST_SIZES.items()),
        Collection("CIFAR10", (3, 32, 32), 10, (50_000, 10_000)),
        Collection("CIFAR100", (3, 32, 32), 100, (50_000, 10_000)),
        Collection("SVHN", (3, 32, 32), 10, (73_257, 26_032)),
        Collection("USPS", (1, 16, 16), 10, (7_291, 2_007)),
    )
}


def torchvisions(one: Collection) -> Any:
    """The class of torchvision, which is imported only where it is needed."""
    from torchvision import datasets

    return getattr(datasets, one.kind)


def stems(one: Collection) -> dict[str, tuple[int, ...]]:
    """The idx files, without `.gz`, and the shapes of their arrays: training images and labels, test images, labels."""
    parts = ("train", "t10k") if one.split is None else (f"emnist-{one.split}-train", f"emnist-{one.split}-test")
    table: dict[str, tuple[int, ...]] = {}
    for part, size in zip(parts, one.sizes, strict=True):
        table[f"{part}-images-idx3-ubyte"] = (size, *one.shape[1:])
        table[f"{part}-labels-idx1-ubyte"] = (size,)
    return table


def other_files(one: Collection) -> dict[str, str]:
    """The files that are not in the idx format, below the data root, and the MD5 of each."""
    kind = torchvisions(one)
    if one.kind in ("SVHN", "USPS"):
        return {name: md5 for _, name, md5 in (kind.split_list[part] for part in ("train", "test"))}
    listed = [*kind.train_list, *kind.test_list, (kind.meta["filename"], kind.meta["md5"])]
    return {f"{kind.base_folder}/{name}": md5 for name, md5 in listed}


def places(one: Collection, directory: Path) -> list[Path]:
    """The files of a collection; ConfigError if one is absent or has the wrong size: names it and the cure."""
    cure = cured(one)
    if one.is_idx:
        return [idx.find(directory, f"{one.kind}/raw", stem, shape, cure) for stem, shape in stems(one).items()]
    absent = next((name for name in other_files(one) if not (directory / name).is_file()), None)
    if absent:
        raise ConfigError(f"no {absent} (MD5 {other_files(one)[absent]}) in {directory}; {cure}")
    return [directory / name for name in other_files(one)]


def cured(one: Collection) -> str:
    """The remedy that ends every error message about an absent or damaged file."""
    return f'run "fedexp data download {one.words}", or set data_dir or FEDEXP_DATA to the folder that holds it'


def verify(one: Collection, directory: Path) -> Iterator[str]:
    """Yields a line for each file, after comparing it with its MD5 where one is published."""
    known = other_files(one) if not one.is_idx else {}
    if one.is_idx and one.split is None:
        known = {f"{one.kind}/raw/{name}": md5 for name, md5 in torchvisions(one).resources}
    for path in places(one, directory):
        name = path.relative_to(directory).as_posix()
        if name not in known:
            yield f"{name} has the right size (no MD5 of it is published)"
            continue
        found = digest(path)
        if found != known[name]:
            raise ConfigError(f"{path} is damaged: MD5 {found}, must be {known[name]}; {cured(one)}")
        yield f"{name} (MD5 {found}) is right"


def read(one: Collection, directory: Path) -> tuple[list[np.ndarray], tuple[str, ...]]:
    """Training images uint8 `[S, C, H, W]` and labels int64 `[S]`, test images and labels, and the classes' names."""
    list(verify(one, directory))
    if one.is_idx:
        return _idx_arrays(one, directory), class_names(one, torchvisions(one))
    both = [_opened(one, directory, part) for part in ("train", "test")]
    arrays = [array for found in both for array in (_channels_first(one, found.data), _labels(found))]
    for array, shape in zip(
        arrays, [shape for size in one.sizes for shape in ((size, *one.shape), (size,))], strict=True
    ):
        if array.shape != shape:
            raise ConfigError(f"{one.kind} in {directory} has an array of shape {array.shape}, must be {shape}")
    return arrays, class_names(one, both[0])


def class_names(one: Collection, found: Any) -> tuple[str, ...]:
    """The names that torchvision gives to the classes, else their numbers."""
    if one.split is not None:
        names = found.classes_split_dict[one.split]
        return tuple(names[1:] if one.split == "letters" else names)  # its first letter is none
    return tuple(getattr(found, "classes", map(str, range(one.classes))))


def _idx_arrays(one: Collection, directory: Path) -> list[np.ndarray]:
    """Reads the idx files; EMNIST's images are transposed and its letters count from 1, which is undone."""
    shapes = stems(one).values()
    found = [idx.read(path, shape, cured(one)) for path, shape in zip(places(one, directory), shapes, strict=True)]
    first = int(one.split == "letters")
    images = [array.transpose(0, 2, 1) if one.split else array for array in found[::2]]
    labels = [array.astype(np.int64) - first for array in found[1::2]]
    return [images[0][:, None].copy(), labels[0], images[1][:, None].copy(), labels[1]]


def _opened(one: Collection, directory: Path, part: str) -> Any:
    how = {"split": part} if one.kind == "SVHN" else {"train": part == "train"}
    try:
        return torchvisions(one)(str(directory), **how)
    except (RuntimeError, OSError, ValueError, KeyError) as error:
        raise ConfigError(f"{one.kind} in {directory} cannot be read: {first_line(error)}; {cured(one)}") from None


def _channels_first(one: Collection, images: np.ndarray) -> np.ndarray:
    if images.ndim == 3:
        return images[:, None]
    return images if images.shape[1] == one.shape[0] else images.transpose(0, 3, 1, 2)


def _labels(found: Any) -> np.ndarray:
    return np.asarray(found.labels if hasattr(found, "labels") else found.targets, np.int64)


def download(one: Collection, directory: Path) -> None:
    """Has torchvision fetch and check the files in a temporary folder, then moves those that are needed."""
    kind = torchvisions(one)
    with making(directory / one.kind) as workshop:
        workshop.mkdir()
        try:
            if one.kind == "SVHN":
                found = [kind(str(workshop), split=part, download=True) for part in ("train", "test")]
            else:
                more = {"split": one.split} if one.split else {}
                found = [kind(str(workshop), train=train, download=True, **more) for train in (True, False)]
        except (RuntimeError, OSError) as error:
            raise ConfigError(f"could not download {one.kind}: {first_line(error)}") from None
        del found
        for path in places(one, workshop):
            target = directory / path.relative_to(workshop)
            target.parent.mkdir(parents=True, exist_ok=True)
            publish(path, target)
