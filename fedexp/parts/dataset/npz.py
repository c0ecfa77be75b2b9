"""A user's own arrays: `x_train y_train x_test y_test [subject]` in one .npz file.

Shapes and types come from the headers before anything is loaded. Examples are tables `[S, F]`, grey images
`[S, H, W]`, or anything with a declared layout: `channels_first` `[S, C, ...]`, `channels_last` `[S, ..., C]` (also for
signals `[S, C, L]`, `[S, L, C]`). uint8 is stored as it is and divided by 255 in the batch; other types become float32.

Arrays of 256 MB and more that are stored without compression (`np.savez`) stay in the file, and examples are read when
they are used: uint8 or float32 tables, signals, grey images, and colour images with their channels last.
"""

from pathlib import Path
from typing import Literal

import numpy as np
import torch

from fedexp.data.npy_header import Header, headers, read, verify_checksums
from fedexp.parts import ConfigError, Data, Dataset, Facts, Split, did_you_mean, find_user_file
from fedexp.parts.dataset.check_data import all_finite
from fedexp.parts.dataset.normalising import moments

REQUIRED = ("x_train", "y_train", "x_test", "y_test")


class Npz(Dataset):
    """`normalise=train` uses mean and deviation of each channel (or feature) of the training examples."""

    path: Path
    layout: Literal["channels_first", "channels_last"] | None = None
    normalise: Literal["none", "train"] = "none"

    @property
    def subject_option(self) -> str:
        return "the array subject"

    def leaks(self) -> str:
        return "" if self.normalise == "none" else "nor are mean and deviation of all training examples"

    def facts(self, directory: Path) -> Facts:
        heads = self._headers(directory)
        shape = self._channels_first(heads["x_train"].shape)
        labels = self._labels(directory)["y_train"]
        subjects = len(np.unique(self._read(directory, "subject"))) if "subject" in heads else None
        return Facts(shape, int(labels.max()) + 1, len(labels), subjects)

    def require(self, directory: Path) -> None:
        self._headers(directory)

    def verify(self, directory: Path) -> list[str]:
        self.load(directory, 0)
        verify_checksums(self._file(directory))  # what is mapped was not compared with its checksum
        return [f"{self._file(directory)} holds usable arrays (your own file: there is no checksum)"]

    def download(self, directory: Path) -> None:
        raise ConfigError("dataset=npz has no source to download from: it reads your own file; set dataset.path=...")

    def load(self, directory: Path, seed: int) -> Data:
        heads = self._headers(directory)
        labels = self._labels(directory)
        train_x, test_x = (self._examples(directory, name) for name in ("x_train", "x_test"))
        subject = None
        if "subject" in heads:
            subject = torch.from_numpy(self._read(directory, "subject").astype(np.int64))
        train = Split(train_x, torch.from_numpy(labels["y_train"]), subject)
        test = Split(test_x, torch.from_numpy(labels["y_test"]))
        scale = 255.0 if train_x.dtype == torch.uint8 else 1.0
        mean, std = moments(train_x, scale) if self.normalise == "train" else ((0.0,), (1.0,))
        names = tuple(map(str, range(int(labels["y_train"].max()) + 1)))
        return Data(train, test, names, scale, mean, std)

    def _file(self, directory: Path) -> Path:
        return find_user_file(self.path, directory, "dataset.path", ".npz")

    def _headers(self, directory: Path) -> dict[str, Header]:
        file = self._file(directory)
        heads = headers(file)
        for name in REQUIRED:
            if name not in heads:
                hint = did_you_mean(name, list(heads)) if heads else "it holds no arrays"
                raise ConfigError(f"{file} lacks the array {name} (it needs {', '.join(REQUIRED)}); {hint}")
        for name in (*REQUIRED, *({"subject"} & set(heads))):
            _check_kind(file, name, heads[name])
        _check_shapes(file, heads)
        self._channels_first(heads["x_train"].shape)
        return heads

    def _channels_first(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of one example with its channel in front."""
        _, *example_shape = shape
        if len(example_shape) == 1:
            return tuple(example_shape)
        if len(example_shape) == 2 and self.layout is None:
            return (1, *example_shape)
        if len(example_shape) == 3 and self.layout is None:
            raise ConfigError(
                f"dataset.layout must be channels_first or channels_last for examples of shape {tuple(example_shape)}, "
                "got None"
            )
        return (example_shape[-1], *example_shape[:-1]) if self.layout == "channels_last" else tuple(example_shape)

    def _read(self, directory: Path, name: str) -> np.ndarray:
        return read(self._file(directory), name)

    def _labels(self, directory: Path) -> dict[str, np.ndarray]:
        """Both label arrays as int64, checked: 0..K-1, each of them in the training examples."""
        file = self._file(directory)
        labels = {name: self._read(directory, name) for name in ("y_train", "y_test")}
        present = np.unique(labels["y_train"])
        if len(present) < 2 or not np.array_equal(present, np.arange(len(present))):
            raise ConfigError(
                f"y_train in {file} must hold the labels 0..K-1 (all of them, K > 1), {_preview(present)}"
            )
        unknown = np.setdiff1d(labels["y_test"], present)
        if len(unknown):
            raise ConfigError(f"y_test in {file} must hold labels of y_train (0..{present[-1]}), {_preview(unknown)}")
        return {name: array.astype(np.int64) for name, array in labels.items()}

    def _examples(self, directory: Path, name: str) -> torch.Tensor:
        array = self._read(directory, name)
        example_shape = self._channels_first(array.shape)
        if array.ndim > 2 and self.layout == "channels_last":
            array = np.moveaxis(array, -1, 1)
        array = array.reshape(len(array), *example_shape)
        if array.dtype == np.uint8:
            return torch.from_numpy(array)
        with np.errstate(over="ignore"):
            x = torch.from_numpy(np.asarray(array, np.float32))
        if not all_finite(x):
            raise ConfigError(f"{name} in {self._file(directory)} must be finite, got NaN or infinite numbers")
        return x


def _check_kind(file: Path, name: str, head: Header) -> None:
    allowed = {"x": "buif", "y": "ui", "s": "ui"}[name[0]]
    if head.dtype.kind not in allowed:
        wanted = "numbers" if name[0] == "x" else "integers"
        raise ConfigError(f"{name} in {file} must hold {wanted}, got dtype {head.dtype}")


def _check_shapes(file: Path, heads: dict[str, Header]) -> None:
    shape = {name: head.shape for name, head in heads.items()}
    pairs = [("x_train", "y_train"), ("x_test", "y_test")] + [("x_train", "subject")] * ("subject" in heads)
    for x, y in pairs:
        if not 2 <= len(shape[x]) <= 4 or 0 in shape[x]:
            raise ConfigError(f"{x} in {file} must have 2 to 4 dimensions and not be empty, got shape {shape[x]}")
        if shape[y] != shape[x][:1]:
            raise ConfigError(f"{y} in {file} must have shape {shape[x][:1]} like the examples, got {shape[y]}")
    if shape["x_train"][1:] != shape["x_test"][1:]:
        raise ConfigError(f"x_test in {file} must have examples like x_train {shape['x_train']}, got {shape['x_test']}")
    kinds = heads["x_train"].dtype, heads["x_test"].dtype
    if (kinds[0] == np.uint8) != (kinds[1] == np.uint8):
        raise ConfigError(f"x_train and x_test in {file} must both be uint8 or both not, got {kinds[0]} and {kinds[1]}")


def _preview(values: np.ndarray) -> str:
    text = ", ".join(map(str, values[:10].tolist()))
    return f"got {text}{', ...' if len(values) > 10 else ''}"
