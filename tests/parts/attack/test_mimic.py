from dataclasses import replace

import pytest
import torch

from fedexp.parts.attack.forging import AttackerKnowledge
from fedexp.parts.attack.mimic import Mimic, oja_step


def test_copies_one_honest_client(scene: AttackerKnowledge):
    forged, memory = Mimic().forge(scene)
    assert forged[0].tolist() == forged[1].tolist()
    assert forged[0].tolist() in scene.honest_updates.tolist()
    assert memory["seen"] == 1
    assert memory["direction"].norm().item() == pytest.approx(1)


def test_the_direction_settles_where_honest_clients_differ_most(scene: AttackerKnowledge):
    forged, memory = Mimic().forge(scene)
    for _ in range(39):
        forged, memory = Mimic().forge(replace(scene, memory=memory))
    covariance = torch.cov(scene.honest_updates.T)
    top = torch.linalg.eigh(covariance).eigenvectors[:, -1]
    assert abs(float(top.double() @ memory["direction"])) == pytest.approx(1, abs=1e-2)
    assert forged[0].tolist() in ([2.0, 3.0], [3.0, -3.0])  # the two ends of the long axis


def test_equal_rows_leave_the_direction():
    direction = torch.tensor([0.6, 0.8], dtype=torch.float64)
    assert torch.equal(oja_step(direction, torch.ones(3, 2), 4), direction)


def test_one_round_by_hand():
    """Three rounds led to (0.6, 0.8); of it the centred rows 3, -1, -2 along x make (1, 0), which counts a quarter."""
    rows = torch.tensor([[4.0, 1.0], [0.0, 1.0], [-1.0, 1.0]])
    moved = oja_step(torch.tensor([0.6, 0.8], dtype=torch.float64), rows, 3)
    wanted = torch.tensor([3 * 0.6 + 1, 3 * 0.8], dtype=torch.float64) / 4
    torch.testing.assert_close(moved, wanted / wanted.norm())


def test_the_farthest_along_the_direction_is_copied(scene: AttackerKnowledge):
    honest = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [5.0, 0.0], [-2.0, 0.0]])
    memory = {"direction": torch.tensor([1.0, 0.0]), "seen": 5}
    assert Mimic().forge(replace(scene, honest_updates=honest, memory=memory))[0].tolist() == [[5, 0], [5, 0]]


def test_huge_updates_do_not_spoil_the_direction(scene: AttackerKnowledge):
    forged, memory = Mimic().forge(replace(scene, honest_updates=scene.honest_updates * 1e37))
    assert memory["direction"].norm().item() == pytest.approx(1)
    assert forged.isfinite().all()
