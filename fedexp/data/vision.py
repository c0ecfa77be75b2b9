"""Image datasets of torchvision: their known facts, their files, and reading them.

Files are where torchvision puts them, and its lists say their MD5. Bytes in the idx format are read by `idx`,
compressed or not; of compressed ones the MD5 is compared. All other files are compared with their MD5 before
torchvision opens them, since it unpickles some of them. torchvision takes a second or more to import, so what is known
of a collection without it is used first.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedexp.core.errors import ConfigError, first_line
from fedexp.data import idx
from fedexp.data.store import digest
from fedexp.files.atomic import publish, scratch_path

EMNIST_CLASSES = {"byclass": 62, "bymerge": 47, "balanced": 47, "letters": 26, "digits": 10, "mnist": 10}
EMNIST_SIZES = {
    "byclass": (697_932, 116_323),
    "bymerge": (697_932, 116_323),
    "balanced": (112_800, 18_800),
    "letters": (124_800, 20_800),
    "digits": (240_000, 40_000),
    "mnist": (60_000, 10_000),
}
EMNIST_MD5 = "58c8d27c78d21e728a6bc7b3cc06412e"  # of its archive; none is published of single files
DIGITS = (1, 28, 28)


@dataclass(frozen=True)
class Collection:
    """The known facts of a dataset: torchvision's class, its split, and its training and test sizes.

    `option` is the option that reads it. `digests` are the MD5 of its files below the data root, where they are not
    those of torchvision's lists, and `class_names` the names of its classes, where they are not torchvision's.
    """

    kind: str
    shape: tuple[int, int, int]
    classes: int
    sizes: tuple[int, int]
    split: str | None = None
    option: str = "torchvision"
    digests: Mapping[str, str] | None = None
    class_names: tuple[str, ...] | None = None

    @property
    def is_idx(self) -> bool:
        """Whether its files are in the idx format."""
        return self.shape == DIGITS

    @property
    def words(self) -> str:
        """How the dataset is chosen on the command line."""
        if self.option != "torchvision":
            return self.option
        return f"torchvision dataset.name={self.kind}" + (f" dataset.split={self.split}" if self.split else "")


COLLECTIONS = {
    (collection.kind, collection.split): collection
    for collection in (
        *(Collection(kind, DIGITS, 10, (60_000, 10_000)) for kind in ("MNIST", "FashionMNIST", "KMNIST")),
        *(Collection("EMNIST", DIGITS, EMNIST_CLASSES[split], sizes, split) for split, sizes in EMNIST_SIZES.items()),
        Collection("CIFAR10", (3, 32, 32), 10, (50_000, 10_000)),
        Collection("CIFAR100", (3, 32, 32), 100, (50_000, 10_000)),
        Collection("SVHN", (3, 32, 32), 10, (73_257, 26_032)),
        Collection("USPS", (1, 16, 16), 10, (7_291, 2_007)),
    )
}


def torchvision_class(collection: Collection) -> Any:
    """The class of torchvision, which is imported only where it is needed."""
    from torchvision import datasets

    return getattr(datasets, collection.kind)


def idx_shapes(collection: Collection) -> dict[str, tuple[int, ...]]:
    """The idx files, without `.gz`, and the shapes of their arrays: training images and labels, test images, labels."""
    parts = (
        ("train", "t10k")
        if collection.split is None
        else (f"emnist-{collection.split}-train", f"emnist-{collection.split}-test")
    )
    table: dict[str, tuple[int, ...]] = {}
    for part, size in zip(parts, collection.sizes, strict=True):
        table[f"{part}-images-idx3-ubyte"] = (size, *collection.shape[1:])
        table[f"{part}-labels-idx1-ubyte"] = (size,)
    return table


def file_digests(collection: Collection) -> Mapping[str, str]:
    """The MD5 of each file below the data root, where one is published."""
    if collection.digests is not None:
        return collection.digests
    if collection.split is not None:
        return {}
    kind = torchvision_class(collection)
    if collection.is_idx:
        return {f"{collection.kind}/raw/{name}": md5 for name, md5 in kind.resources}
    if collection.kind in ("SVHN", "USPS"):
        return {name: md5 for _, name, md5 in (kind.split_list[part] for part in ("train", "test"))}
    listed = [*kind.train_list, *kind.test_list, (kind.meta["filename"], kind.meta["md5"])]
    return {f"{kind.base_folder}/{name}": md5 for name, md5 in listed}


def find_files(collection: Collection, directory: Path) -> list[Path]:
    """The files of a collection; ConfigError if one is absent or has the wrong size: names it and the cure."""
    cure = download_cure(collection)
    if collection.is_idx:
        folder, digests = f"{collection.kind}/raw", collection.digests or {}
        return [
            idx.find_file(directory, folder, stem, shape, f"MD5 {digests[name]}; {cure}" if name in digests else cure)
            for stem, shape in idx_shapes(collection).items()
            for name in [f"{folder}/{stem}.gz"]
        ]
    missing = next((name for name in file_digests(collection) if not (directory / name).is_file()), None)
    if missing:
        raise ConfigError(f"no {missing} (MD5 {file_digests(collection)[missing]}) in {directory}; {cure}")
    return [directory / name for name in file_digests(collection)]


def download_cure(collection: Collection) -> str:
    """The remedy that ends every error message about an absent or damaged file."""
    source = f"from gzip.zip, MD5 {EMNIST_MD5}; " if collection.split else ""
    folder = f"{collection.kind}/" if collection.is_idx else "it"
    return (
        f'{source}run "fedexp data download {collection.words}", or set data_dir or FEDEXP_DATA to the folder that '
        f"holds {folder}"
    )


def compare_digests(collection: Collection, directory: Path) -> dict[Path, str | None]:
    """The files of a collection, and the MD5 of each; None where none is published.

    Raises:
        ConfigError: a file is absent, or is not the published one.
    """
    digests = file_digests(collection)
    files = {path: digests.get(path.relative_to(directory).as_posix()) for path in find_files(collection, directory)}
    for path, md5 in files.items():
        if md5 is not None and (checksum := digest(path)) != md5:
            raise ConfigError(f"{path} is damaged: MD5 {checksum}, must be {md5}; {download_cure(collection)}")
    return files


def verify(collection: Collection, directory: Path) -> Iterator[str]:
    """Yields a line for each file, which is compared with its MD5, or read to its end where none is published."""
    for path, md5 in compare_digests(collection, directory).items():
        name = path.relative_to(directory).as_posix()
        if md5 is not None:
            yield f"{name} ({path.stat().st_size:,} bytes, MD5 {md5}) is right"
        else:
            shape = idx_shapes(collection)[path.name.removesuffix(".gz")]
            entries = len(idx.read(path, shape, download_cure(collection)))
            yield f"{name} is readable to its end and holds {entries:,} entries (no MD5 of it is published)"


def read(collection: Collection, directory: Path) -> tuple[list[np.ndarray], tuple[str, ...]]:
    """Training images uint8 `[S, C, H, W]` and labels int64 `[S]`, test images and labels, and the classes' names."""
    compare_digests(collection, directory)
    if collection.is_idx:
        names = collection.class_names or class_names(collection, torchvision_class(collection))
        return _idx_arrays(collection, directory), names
    subsets = [_open_split(collection, directory, part) for part in ("train", "test")]
    arrays = [array for subset in subsets for array in (_channels_first(collection, subset.data), _labels(subset))]
    for array, shape in zip(
        arrays, [shape for size in collection.sizes for shape in ((size, *collection.shape), (size,))], strict=True
    ):
        if array.shape != shape:
            raise ConfigError(f"{collection.kind} in {directory} has an array of shape {array.shape}, must be {shape}")
    return arrays, class_names(collection, subsets[0])


def class_names(collection: Collection, dataset: Any) -> tuple[str, ...]:
    """The names that torchvision gives to the classes, else their numbers."""
    if collection.split is not None:
        names = dataset.classes_split_dict[collection.split]
        return tuple(names[1:] if collection.split == "letters" else names)  # its first letter is none
    return tuple(getattr(dataset, "classes", map(str, range(collection.classes))))


def _idx_arrays(collection: Collection, directory: Path) -> list[np.ndarray]:
    """Reads the idx files; EMNIST's images are transposed and its letters count from 1, which is undone."""
    shapes = idx_shapes(collection).values()
    arrays = [
        idx.read(path, shape, download_cure(collection))
        for path, shape in zip(find_files(collection, directory), shapes, strict=True)
    ]
    first = int(collection.split == "letters")
    images = [array.transpose(0, 2, 1) if collection.split else array for array in arrays[::2]]
    labels = [array.astype(np.int64) - first for array in arrays[1::2]]
    return [images[0][:, None].copy(), labels[0], images[1][:, None].copy(), labels[1]]


def _open_split(collection: Collection, directory: Path, part: str) -> Any:
    split_argument = {"split": part} if collection.kind == "SVHN" else {"train": part == "train"}
    try:
        return torchvision_class(collection)(str(directory), **split_argument)
    except (RuntimeError, OSError, ValueError, KeyError) as error:
        raise ConfigError(
            f"{collection.kind} in {directory} cannot be read: {first_line(error)}; {download_cure(collection)}"
        ) from None


def _channels_first(collection: Collection, images: np.ndarray) -> np.ndarray:
    if images.ndim == 3:
        return images[:, None]
    return images if images.shape[1] == collection.shape[0] else images.transpose(0, 3, 1, 2)


def _labels(dataset: Any) -> np.ndarray:
    return np.asarray(dataset.labels if hasattr(dataset, "labels") else dataset.targets, np.int64)


def download(collection: Collection, directory: Path) -> None:
    """Has torchvision fetch and check the files in a temporary folder, then moves those that are needed."""
    kind = torchvision_class(collection)
    with scratch_path(directory / collection.kind) as temporary_folder:
        temporary_folder.mkdir()
        try:
            if collection.kind == "SVHN":
                downloads = [kind(str(temporary_folder), split=part, download=True) for part in ("train", "test")]
            else:
                split_argument = {"split": collection.split} if collection.split else {}
                downloads = [
                    kind(str(temporary_folder), train=train, download=True, **split_argument) for train in (True, False)
                ]
        except (RuntimeError, OSError) as error:
            reason = " ".join(str(error).split())  # torchvision tells it on the last of several lines
            raise ConfigError(f"could not download {collection.kind}: {reason}") from None
        del downloads
        for path in find_files(collection, temporary_folder):
            target = directory / path.relative_to(temporary_folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            publish(path, target)
