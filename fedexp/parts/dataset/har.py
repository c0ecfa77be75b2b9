"""UCI HAPT: 12 activities and postural transitions of 30 people, from a phone at the waist (50 Hz).

Reyes-Ortiz, Oneto, Sama, Parra, Anguita, "Transition-aware human activity recognition using smartphones",
Neurocomputing 171, 2016. `windows`: the raw recordings cut into windows of 128 samples with step 64 inside each
labelled stretch, which gives the 10,929 windows of the published tables; channels are acceleration x y z (g) and
rotation x y z (rad/s), normalised by the training people's mean and deviation, without the authors' noise filter.
`features`: the published tables of 561 features in [-1, 1]. The 21 training and 9 test people are those published.

Since neighbouring windows share half of their samples, what clients hold out or set apart for validation resembles what
they train on: of a random fifth nine in ten windows have a neighbour there. The test people share nothing.
"""

from pathlib import Path
from typing import Literal

import numpy as np
import torch

from fedexp.data import hapt
from fedexp.data.download import fetch
from fedexp.data.windows import LENGTH
from fedexp.parts import ConfigError, Data, Dataset, Facts, split_by_mask

ARCHIVE = (
    "https://archive.ics.uci.edu/static/public/341/"
    "smartphone+based+recognition+of+human+activities+and+postural+transitions.zip"
)
CHANNELS, FEATURES = 6, 561
SIZES = {"train": 7_767, "test": 3_162}
TEST_PEOPLE = (2, 4, 9, 10, 12, 13, 18, 20, 24)
TRAINING_PEOPLE = 21
PEOPLE = tuple(f"person {number}" for number in range(31))  # the dataset counts them from 1
CLASSES = (
    "WALKING", "WALKING_UPSTAIRS", "WALKING_DOWNSTAIRS", "SITTING", "STANDING", "LAYING",
    "STAND_TO_SIT", "SIT_TO_STAND", "SIT_TO_LIE", "LIE_TO_SIT", "STAND_TO_LIE", "LIE_TO_STAND",
)  # fmt: skip


class Har(Dataset):
    """`representation`: raw windows `[6, 128]`, or the authors' 561 features of each window."""

    representation: Literal["windows", "features"] = "windows"

    shared_samples = "each window shares half of its samples with the next"

    def leaks(self) -> str:
        return "nor are mean and deviation of all training people" if self.representation == "windows" else ""

    def facts(self, directory: Path) -> Facts:
        shape = (CHANNELS, LENGTH) if self.representation == "windows" else (FEATURES,)
        return Facts(shape, len(CLASSES), SIZES["train"], TRAINING_PEOPLE)

    def require(self, directory: Path) -> None:
        hapt.find_source(directory, self._files())

    def verify(self, directory: Path) -> list[str]:
        source = hapt.find_source(directory, self._files())
        if self.representation == "features":
            self._check_sizes(hapt.tables(source, FEATURES)["subject"], source)
            return [f"{source.relative_to(directory)}: the tables have the right sizes (no checksum is published)"]
        count = sum(1 for _ in hapt.recordings(source, hapt.published_digests()))
        return [f"{source.relative_to(directory)}: {count} files, each with the right SHA-256"]

    def download(self, directory: Path) -> None:
        try:
            self.verify(directory)
        except ConfigError:
            fetch(ARCHIVE, directory / hapt.FOLDERS[0] / hapt.ZIPS[0], _check_archive)

    def load(self, directory: Path, seed: int) -> Data:
        source = hapt.find_source(directory, self._files())
        if self.representation == "features":
            arrays = hapt.tables(source, FEATURES)
        else:
            arrays = hapt.windows(source, hapt.published_digests())
        self._check_sizes(arrays["subject"], source)
        held_out = np.isin(arrays["subject"], TEST_PEOPLE)
        train, test = split_by_mask(held_out, arrays["x"], arrays["y"], arrays["subject"])
        if self.representation == "features":
            return Data(train, test, CLASSES, subject_names=PEOPLE)
        mean, std = _moments(train.x)
        return Data(train, test, CLASSES, mean=mean, std=std, subject_names=PEOPLE)

    def _files(self) -> list[str]:
        return list(hapt.TABLES) if self.representation == "features" else list(hapt.published_digests())

    def _check_sizes(self, subject: np.ndarray, source: Path) -> None:
        test = int(np.isin(subject, TEST_PEOPLE).sum())
        sizes = {"train": len(subject) - test, "test": test}
        if sizes != SIZES:
            raise ConfigError(f"{source} gives {sizes} examples, must be {SIZES}; {hapt.CURE}")


def _moments(x: torch.Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel of `x [S, 6, 128]`."""
    wide = x.double().transpose(0, 1).flatten(1)
    return tuple(wide.mean(dim=1).tolist()), tuple(wide.std(dim=1, correction=0).tolist())


def _check_archive(path: Path) -> None:
    """Checks the recordings in a downloaded archive, as no checksum of the whole archive is published."""
    for _ in hapt.recordings(path, hapt.published_digests()):
        pass
