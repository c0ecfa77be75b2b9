from typing import Literal

import pytest
import torch

from fedexp.parts.attack.forging import AttackerKnowledge
from fedexp.parts.attack.min_max import MinMax, largest_step


@pytest.mark.parametrize("direction", ["std", "sign", "unit"])
def test_exactly_as_far_away_as_two_honest_ones(scene: AttackerKnowledge, direction: Literal["std", "sign", "unit"]):
    forged, _ = MinMax(direction=direction).forge(scene)
    farthest = (forged[0] - scene.honest_updates).norm(dim=1).max().item()
    assert farthest == pytest.approx(37**0.5, rel=1e-6)  # between (2, 3) and (3, -3)


def test_by_hand():
    # along x from 0: at -1 and 1 the honest are 2 apart, so it may go on until 2 from +1, that is to -1
    rows = torch.tensor([[-1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    assert largest_step(torch.zeros(2, dtype=torch.float64), torch.tensor([-1.0, 0.0]).double(), rows) == 1.0


def test_equals_a_search(scene: AttackerKnowledge):
    rows = scene.honest_updates.double()
    mean, direction = rows.mean(dim=0), -rows.std(dim=0, correction=0)
    allowed, low, high = torch.cdist(rows, rows).max().item(), 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        inside = (mean + middle * direction - rows).norm(dim=1).max().item() <= allowed
        low, high = (middle, high) if inside else (low, middle)
    assert largest_step(mean, direction, rows) == pytest.approx(low)


def test_equal_honest_clients_leave_no_room():
    rows = torch.ones(3, 2, dtype=torch.float64)
    assert largest_step(rows[0], torch.zeros(2).double(), rows) == 0.0
    assert largest_step(rows[0], torch.ones(2).double(), rows) == 0.0
