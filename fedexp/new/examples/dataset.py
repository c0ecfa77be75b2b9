"""Where the examples come from: write here how they are read, and what can be said of them before that.

As it stands, made examples: points around 0 and points around 1. Files lie in a folder below `directory`, and `require`
says which of them are missing.
"""

from pathlib import Path
from typing import Annotated

import numpy as np
import torch

from fedexp.parts import Data, Dataset, Facts, Range, Split

FEATURES = 8


def points(count: int, rng: np.random.Generator) -> Split:
    """So many examples, every other one of either class."""
    y = torch.arange(count) % 2
    return Split(torch.from_numpy(rng.standard_normal((count, FEATURES), dtype=np.float32)) + y[:, None], y)


class OwnDataset(Dataset):
    """`size` examples to train on, a quarter as many to test on."""

    size: Annotated[int, Range(10)] = 1000

    def facts(self, directory: Path) -> Facts:
        return Facts(shape=(FEATURES,), classes=2, train_size=self.size)

    def load(self, directory: Path, seed: int) -> Data:
        rng = np.random.default_rng(seed)
        return Data(train=points(self.size, rng), test=points(self.size // 4, rng), class_names=("zero", "one"))
