"""Phases by hand: which entries move in which step, in the layout's order and in another."""

import numpy as np
import torch

from fedexp.core.values import Layout
from fedexp.parts.local.sgd import SGD
from fedexp.training.client.phases import Phases

LAYOUT = Layout(("a", "b", "mean"), ((2,), (1,), (1,)), 2)


class LastEntryFirst(SGD):
    """Moves the third entry in its first phase."""

    def phase_columns(self, layout: Layout) -> np.ndarray:
        return np.array([2])


def test_the_first_phase_moves_its_columns_and_the_second_the_others():
    phases = Phases(LastEntryFirst(), LAYOUT, torch.zeros(1))
    moving = phases.moving(torch.tensor([[1.0], [0.0], [1.0]]), torch.tensor([[1.0], [1.0], [0.0]]))
    assert moving.tolist() == [[0, 0, 1], [1, 1, 0], [0, 0, 0]]
    swapped = Phases(LastEntryFirst(), LAYOUT, torch.zeros(1), torch.tensor([2, 0, 1, 3]))
    assert swapped.moving(torch.ones(1, 1), torch.ones(1, 1)).tolist() == [[1, 0, 0]]


def test_without_phases_all_that_is_active_moves():
    active = torch.tensor([[1.0], [0.0]])
    assert Phases(SGD(), LAYOUT, torch.zeros(1)).moving(torch.zeros(2, 1), active) is active
