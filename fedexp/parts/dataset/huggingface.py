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
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch

from fedexp.core.errors import ConfigError, did_you_mean, first_line
from fedexp.core.fields import describe_value
from fedexp.core.part import Range
from fedexp.data.store import find_user_path, stamp
from fedexp.data.tokens import TextFormat, Unit, encode_texts, tokenize, vocabulary
from fedexp.files.atomic import publish, scratch_path
from fedexp.parts.dataset.contract import Data, Dataset, Facts, Split
from fedexp.parts.dataset.normalising import Normalise, image_data, leaked_moments

FOLDER = "huggingface"
DICT_FILE = "dataset_dict.json"  # what save_to_disk writes beside the splits
MAX_CLASSES = 10_000  # classes: with more, a label is hardly one


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
    def subject_option(self) -> str:
        return "" if self.client is None else f"dataset.client={self.client}"

    def leaks(self) -> str:
        if self.holds == "texts":
            return "nor is the vocabulary, which is that of all training texts"
        return leaked_moments(self.normalise)

    def facts(self, directory: Path) -> Facts:
        data = self._read(directory)
        shape, subject = tuple(data.train.x.shape[1:]), data.train.subject
        subjects = None if subject is None else len(subject.unique())
        return Facts(shape, len(data.class_names), len(data.train.y), subjects, vocabulary=len(data.vocabulary))

    def require(self, directory: Path) -> None:
        self._folder(directory)
        _library()

    def verify(self, directory: Path) -> list[str]:
        facts = self.facts(directory)
        summary = f"{facts.train_size:,} training examples {list(facts.shape)}, {facts.classes} classes"
        return [f"{self._folder(directory)} holds {summary} (the hub publishes no checksum of them)"]

    def download(self, directory: Path) -> None:
        target = self._download_folder(directory)
        if _is_saved(target):
            return
        with scratch_path(target) as part:
            try:
                _library().load_dataset(self.path, self.configuration).save_to_disk(str(part))
            except ConfigError:
                raise
            except Exception as error:  # the library's, the hub's and the network's
                raise ConfigError(f"could not download {self.path}: {first_line(error)}") from error
            publish(part, target)

    def load(self, directory: Path, seed: int) -> Data:
        data = self._read(directory)
        if self.holds == "texts":
            return data
        return image_data(data.train, data.test, data.class_names, self.normalise)

    def _download_folder(self, directory: Path) -> Path:
        return directory / FOLDER / "--".join([*self.path.split("/"), *([self.configuration or ""])]).rstrip("-")

    def _folder(self, directory: Path) -> Path:
        user_folder = find_user_path(Path(self.path), directory, _is_saved)
        download_folder = self._download_folder(directory)
        if user_folder is None and not _is_saved(download_folder):
            words = [f"dataset.path={self.path}"]
            words += [f"dataset.configuration={self.configuration}"] if self.configuration else []
            raise ConfigError(
                f"dataset.path must be a folder with {DICT_FILE} or a fetched name, but there is no {self.path} here "
                f'or in {directory}; run "fedexp data download huggingface {shlex.join(words)}"'
            )
        return user_folder or download_folder

    def _read(self, directory: Path) -> Data:
        return _parse(self, stamp(self._folder(directory) / DICT_FILE))


def _is_saved(folder: Path) -> bool:
    return (folder / DICT_FILE).is_file()


def _library() -> Any:
    """The module `datasets`."""
    try:
        import datasets  # type: ignore[import-not-found]
    except ImportError:
        raise ConfigError("dataset=huggingface needs the package datasets; pip install 'fedexp[hf]'") from None
    return datasets


@lru_cache(maxsize=1)
def _parse(settings: HuggingFace, source: tuple[tuple[str, int, int], ...]) -> Data:
    """Reads the folder once, as long as what lists its splits stays; images are not yet normalised."""
    folder = Path(source[0][0]).parent
    try:
        dataset_dict = _library().load_from_disk(str(folder))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder} cannot be read: {first_line(error)}") from None
    split_names = {"train": settings.train, "test": settings.test}
    parts = [_get_split(dataset_dict, name, key, folder) for key, name in split_names.items()]
    labels, classes = _labels(settings, parts)
    inputs = [_column(part, settings.input, "input") for part in parts]
    names: tuple[str, ...] = ()
    text = TextFormat(settings.unit, settings.input) if settings.holds == "texts" else None
    if settings.holds == "texts":
        examples, names = _tokens(settings, *inputs)
    else:
        examples = [_images(images, folder) for images in inputs]
    owners = _owners(settings, parts)
    splits = [
        Split(torch.from_numpy(x), torch.from_numpy(y), None if owner is None else torch.from_numpy(owner))
        for x, y, owner in zip(examples, labels, owners, strict=True)
    ]
    return Data(splits[0], splits[1], classes, vocabulary=names, text=text)


def _get_split(dataset_dict: Mapping[str, Any], name: str, key: str, folder: Path) -> Any:
    if name not in dataset_dict:
        raise ConfigError(
            f"dataset.{key} must name a split of {folder}, got {name}; {did_you_mean(name, list(dataset_dict))}"
        )
    return dataset_dict[name]


def _column(part: Any, name: str, key: str) -> Sequence[Any]:
    if name not in part.features:
        raise ConfigError(f"dataset.{key} must name a column, got {name}; {did_you_mean(name, list(part.features))}")
    return list(part[name])


def _labels(settings: HuggingFace, parts: Sequence[Any]) -> tuple[list[np.ndarray], tuple[str, ...]]:
    """The classes of each split, int64 `[S]`, and their names: texts in their order, or what the dataset says."""
    columns = [_column(part, settings.target, "target") for part in parts]
    if all(isinstance(value, str) for column in columns for value in column):
        numbers = {name: number for number, name in enumerate(sorted({*columns[0]}))}
        columns = [[numbers.get(value, value) for value in column] for column in columns]
    else:
        numbers = {}
    for name, column in zip((settings.train, settings.test), columns, strict=True):
        _check_classes(settings.target, name, column)
    labels = [np.array(column, np.int64) for column in columns]
    names = getattr(parts[0].features[settings.target], "names", None) or numbers
    return labels, tuple(names) or tuple(map(str, range(int(labels[0].max()) + 1)))


def _check_classes(target: str, split: str, values: Sequence[Any]) -> None:
    odd = [value for value in values if not (isinstance(value, int | np.integer) and 0 <= value < MAX_CLASSES)]
    if odd:
        raise ConfigError(
            f"dataset.target={target} must hold classes, whole numbers from 0 to {MAX_CLASSES - 1:,} or texts that are "
            f"all in the training split, but {len(odd):,} of {len(values):,} in {split} are none, such as "
            f"{describe_value(odd[0])}; choose another column or split"
        )


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


def _tokens(
    settings: HuggingFace, train: Sequence[str], test: Sequence[str]
) -> tuple[list[np.ndarray], tuple[str, ...]]:
    """Training and test texts as int64 `[S, L]`, and the vocabulary."""
    odd = [text for text in (*train, *test) if not isinstance(text, str)]
    if odd:
        raise ConfigError(
            f"dataset.input={settings.input} must hold texts, got {describe_value(odd[0])}; choose another column"
        )
    names = vocabulary((tokenize(text, settings.unit) for text in train), settings.vocabulary)
    return [encode_texts(texts, settings.unit, names, settings.length) for texts in (train, test)], names


def _owners(settings: HuggingFace, parts: list[Any]) -> list[np.ndarray | None]:
    """The owner of each example, numbered alike in both splits; None where no column of owners is named."""
    if settings.client is None:
        return [None, None]
    names = [_column(part, settings.client, "client") for part in parts]
    kinds = {type(name).__name__ for column in names for name in column}
    if kinds not in ({"str"}, {"int"}):
        raise ConfigError(
            f"dataset.client={settings.client} must hold texts alone or whole numbers alone, got "
            f"{' and '.join(sorted(kinds))}; give every example one"
        )
    numbers = {name: number for number, name in enumerate(sorted({*names[0], *names[1]}))}
    return [np.array([numbers[name] for name in column], np.int64) for column in names]
