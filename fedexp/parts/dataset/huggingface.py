"""A dataset of Hugging Face's library `datasets`: images or texts with one class each, from the disk.

`path` is a folder that `save_to_disk` wrote, or a name on the hub that `fedexp data download huggingface
dataset.path=NAME` has fetched into `huggingface/` below the data root; a run never uses the network. Images must have
one size. Texts are cut into characters or words, numbered by the vocabulary of the training texts (others are `<unk>`)
and cut or filled up to `length`.

The library is not among those that the tests install: they put a stand-in in its place, which has the few functions
used here (`load_from_disk`, `load_dataset`, `save_to_disk`, columns by name, `features`). Legend: S examples, L length.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch

from fedexp.core.errors import ConfigError, first_line, nearest
from fedexp.core.fields import told
from fedexp.core.files import making, publish
from fedexp.core.part import Range
from fedexp.data.store import own_path, stamp
from fedexp.data.tokens import Unit, cut, numbered, vocabulary
from fedexp.parts.dataset.contract import Data, Dataset, Facts, Split
from fedexp.parts.dataset.normalising import Normalise, pixels

FOLDER = "huggingface"
FILE = "dataset_dict.json"  # what save_to_disk writes beside the splits
MOST = 10_000  # classes: with more, a label is hardly one


@dataclass(frozen=True)
class Loaded:
    """Training and test examples, the classes, and the size of the vocabulary (0 for images)."""

    train: Split
    test: Split
    classes: tuple[str, ...]
    words: int


@dataclass(frozen=True, kw_only=True)
class HuggingFace(Dataset):
    """`configuration` is the hub's, for names with several; column `client` holds each example's owner."""

    path: str
    configuration: str | None = None
    holds: Literal["images", "texts"] = "images"
    input: str = "image"
    target: str = "label"
    client: str | None = None
    train: str = "train"
    test: str = "test"
    normalise: Normalise = "half"
    unit: Unit = "words"
    length: Annotated[int, Range(1, 100_000)] = 100
    vocabulary: Annotated[int, Range(1)] = 10_000

    @property
    def names_people(self) -> str:
        return "" if self.client is None else f"dataset.client={self.client}"

    def facts(self, directory: Path) -> Facts:
        read = self._read(directory)
        people = None if read.train.subject is None else int(read.train.subject.unique().numel())
        return Facts(tuple(read.train.x.shape[1:]), len(read.classes), len(read.train.y), people, vocabulary=read.words)

    def require(self, directory: Path) -> None:
        self._folder(directory)
        _library()

    def verify(self, directory: Path) -> list[str]:
        facts = self.facts(directory)
        told = f"{facts.train_size:,} training examples {list(facts.shape)}, {facts.classes} classes"
        return [f"{self._folder(directory)} holds {told} (the hub publishes no checksum of them)"]

    def download(self, directory: Path) -> None:
        target = self._kept(directory)
        if _is_saved(target):
            return
        with making(target) as part:
            try:
                _library().load_dataset(self.path, self.configuration).save_to_disk(str(part))
            except ConfigError:
                raise
            except Exception as error:  # the library's, the hub's and the network's
                raise ConfigError(f"could not download {self.path}: {first_line(error)}") from error
            publish(part, target)

    def load(self, directory: Path, seed: int) -> Data:
        read = self._read(directory)
        if self.holds == "texts":
            return Data(read.train, read.test, read.classes)
        return pixels(read.train, read.test, read.classes, self.normalise)

    def _kept(self, directory: Path) -> Path:
        return directory / FOLDER / "--".join([*self.path.split("/"), *([self.configuration or ""])]).rstrip("-")

    def _folder(self, directory: Path) -> Path:
        own, kept = own_path(Path(self.path), directory, _is_saved), self._kept(directory)
        if own is None and not _is_saved(kept):
            words = [f"dataset.path={self.path}"]
            words += [f"dataset.configuration={self.configuration}"] if self.configuration else []
            raise ConfigError(
                f"dataset.path must be a folder with {FILE} or a fetched name, but there is no {self.path} here or in "
                f'{directory}; run "fedexp data download huggingface {shlex.join(words)}"'
            )
        return own or kept

    def _read(self, directory: Path) -> Loaded:
        return _parse(self, stamp(self._folder(directory) / FILE))


def _is_saved(folder: Path) -> bool:
    return (folder / FILE).is_file()


def _library() -> Any:
    """The module `datasets`."""
    try:
        import datasets  # type: ignore[import-not-found]
    except ImportError:
        raise ConfigError("dataset=huggingface needs the package datasets; pip install 'fedexp[hf]'") from None
    return datasets


@lru_cache(maxsize=1)
def _parse(asked: HuggingFace, source: tuple[tuple[str, int, int], ...]) -> Loaded:
    """Reads the folder once for facts and examples, as long as what lists its splits stays."""
    folder = Path(source[0][0]).parent
    try:
        found = _library().load_from_disk(str(folder))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder} cannot be read: {first_line(error)}") from None
    parts = [_named(found, name, key, folder) for key, name in (("train", asked.train), ("test", asked.test))]
    labels = [_labels(asked, part) for part in parts]
    classes = _classes(parts[0], asked.target, labels[0])
    inputs = [_column(part, asked.input, "input") for part in parts]
    words = 0
    if asked.holds == "texts":
        examples, words = _tokens(asked, *inputs)
    else:
        examples = [_images(images, folder) for images in inputs]
    owners = _owners(asked, parts)
    splits = [
        Split(torch.from_numpy(x), torch.from_numpy(y), None if owner is None else torch.from_numpy(owner))
        for x, y, owner in zip(examples, labels, owners, strict=True)
    ]
    return Loaded(splits[0], splits[1], classes, words)


def _named(found: Mapping[str, Any], name: str, key: str, folder: Path) -> Any:
    if name not in found:
        raise ConfigError(f"dataset.{key} must name a split of {folder}, got {name}; {nearest(name, list(found))}")
    return found[name]


def _column(part: Any, name: str, key: str) -> Sequence[Any]:
    if name not in part.features:
        raise ConfigError(f"dataset.{key} must name a column, got {name}; {nearest(name, list(part.features))}")
    return list(part[name])


def _labels(asked: HuggingFace, part: Any) -> np.ndarray:
    """The classes, int64 `[S]`."""
    values = _column(part, asked.target, "target")
    odd = [value for value in values if not (isinstance(value, int | np.integer) and 0 <= value < MOST)]
    if odd:
        raise ConfigError(
            f"dataset.target={asked.target} must hold classes, whole numbers from 0 to {MOST - 1:,}, but "
            f"{len(odd):,} of {len(values):,} are none, such as {told(odd[0])}; choose another column or split"
        )
    return np.array(values, np.int64)


def _classes(part: Any, target: str, labels: np.ndarray) -> tuple[str, ...]:
    """The names that the dataset gives to its classes, or their numbers where it has none."""
    names = getattr(part.features[target], "names", None)
    return tuple(names) if names else tuple(map(str, range(int(labels.max()) + 1)))


def _images(images: Sequence[Any], folder: Path) -> np.ndarray:
    """Decoded images as uint8 `[S, C, H, W]`."""
    arrays = [np.asarray(image.convert("RGB") if getattr(image, "mode", "") == "P" else image) for image in images]
    if odd := {str(array.dtype) for array in arrays} - {"uint8"}:
        raise ConfigError(f"images in {folder} must have 8 bits a channel, got {min(odd)}; convert them before")
    shapes = sorted({array.shape for array in arrays})
    if len(shapes) != 1 or len(shapes[0]) not in (2, 3):
        raise ConfigError(f"images in {folder} must have one size and as many channels, got {shapes[:3]}")
    stacked = np.stack(arrays)
    return stacked[:, None] if stacked.ndim == 3 else np.ascontiguousarray(stacked.transpose(0, 3, 1, 2))


def _tokens(asked: HuggingFace, train: Sequence[str], test: Sequence[str]) -> tuple[list[np.ndarray], int]:
    """Training and test texts as int64 `[S, L]`, and the size of the vocabulary."""
    odd = [text for text in (*train, *test) if not isinstance(text, str)]
    if odd:
        raise ConfigError(f"dataset.input={asked.input} must hold texts, got {told(odd[0])}; choose another column")
    pieces = [[cut(text, asked.unit) for text in texts] for texts in (train, test)]
    names = vocabulary(pieces[0], asked.vocabulary)
    table = {name: number for number, name in enumerate(names)}
    made = [np.zeros((len(texts), asked.length), np.int64) for texts in pieces]
    for array, texts in zip(made, pieces, strict=True):
        for row, text in zip(array, texts, strict=True):
            row[: len(text)] = numbered(text, table)[: asked.length]
    return made, len(names)


def _owners(asked: HuggingFace, parts: list[Any]) -> list[np.ndarray | None]:
    """The owner of each example, numbered alike in both splits; None where no column of owners is named."""
    if asked.client is None:
        return [None, None]
    names = [_column(part, asked.client, "client") for part in parts]
    kinds = {type(name).__name__ for each in names for name in each}
    if kinds not in ({"str"}, {"int"}):
        raise ConfigError(
            f"dataset.client={asked.client} must hold texts alone or whole numbers alone, got "
            f"{' and '.join(sorted(kinds))}; give every example one"
        )
    people = {name: place for place, name in enumerate(sorted({*names[0], *names[1]}))}
    return [np.array([people[name] for name in each], np.int64) for each in names]
