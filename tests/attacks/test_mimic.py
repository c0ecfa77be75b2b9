from dataclasses import replace

import pytest
import torch

from fedexp.attacks.forging import Scene
from fedexp.attacks.mimic import Mimic, follow


def test_copies_one_honest_client(scene: Scene):
    forged, memory = Mimic().forge(scene)
    assert forged[0].tolist() == forged[1].tolist()
    assert forged[0].tolist() in scene.honest.tolist()
    assert memory["seen"] == 1
    assert memory["direction"].norm().item() == pytest.approx(1)


def test_the_direction_settles_where_honest_clients_differ_most(scene: Scene):
    memory = {}
    for _ in range(40):
        forged, memory = Mimic().forge(replace(scene, memory=memory))
    covariance = torch.cov(scene.honest.T)
    top = torch.linalg.eigh(covariance).eigenvectors[:, -1]
    assert abs(float(top @ memory["direction"])) == pytest.approx(1, abs=1e-2)
    assert forged[0].tolist() in ([2.0, 3.0], [3.0, -3.0])  # the two ends of the long axis


def test_equal_rows_leave_the_direction():
    direction = torch.tensor([0.6, 0.8])
    assert torch.equal(follow(direction, torch.ones(3, 2), 4), direction)
