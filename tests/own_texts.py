"""Made text: lines of numbered characters, with the classes of the synthetic data or the next characters to predict."""

from dataclasses import replace
from pathlib import Path

import torch

from fedexp.parts import Data, Facts, Split
from fedexp.parts.dataset.synthetic import Synthetic

CHARACTERS = 7


class Texts(Synthetic):
    """Every number of a synthetic example becomes one of 7 characters."""

    def facts(self, directory: Path) -> Facts:
        return replace(super().facts(directory), vocabulary=CHARACTERS)

    def load(self, directory: Path, seed: int) -> Data:
        data = super().load(directory, seed)
        train, test = (
            Split((split.x * 2).round().long().clamp(-3, 3) + 3, split.y, split.subject)
            for split in (data.train, data.test)
        )
        return replace(data, train=train, test=test)


def text(examples: int, length: int) -> torch.Tensor:
    """Characters `[S, L]`."""
    return torch.arange(examples * length).view(examples, length) ** 2 % CHARACTERS
