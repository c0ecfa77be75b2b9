from typing import cast

import numpy as np
import pytest
import torch

from fedexp.core.random_streams import stream
from fedexp.parts.attack.forging import AttackerKnowledge
from fedexp.parts.context import Context


class Dice:
    """The streams of one round."""

    def __init__(self, number: int = 1) -> None:
        self.number = number

    def rng(self, *name: str | int) -> np.random.Generator:
        return stream(0, self.number, *name)

    def run_rng(self, *name: str | int) -> np.random.Generator:
        return stream(0, *name)


@pytest.fixture
def scene() -> AttackerKnowledge:
    """Two attackers (clients 3 and 7) who trained to (1, 1) and (3, 5), and three honest ones around (2, 0)."""
    own = torch.tensor([[1.0, 1.0], [3.0, 5.0]])
    honest = torch.tensor([[1.0, 0.0], [2.0, 3.0], [3.0, -3.0]])
    return AttackerKnowledge(np.array([3, 7]), own, honest, {}, cast(Context, Dice()))
