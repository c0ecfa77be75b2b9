from dataclasses import replace

import numpy as np
import pytest
import torch

from fedexp.parts.attack.forging import AttackerKnowledge
from fedexp.parts.attack.gaussian import Gaussian


def test_moments_and_independence(scene: AttackerKnowledge):
    wide = replace(scene, own_updates=torch.zeros(2, 100_000))
    forged, _ = Gaussian(std=3.0).forge(wide)
    assert forged.mean().item() == pytest.approx(0, abs=0.03)
    assert forged.std().item() == pytest.approx(3, rel=0.01)
    assert torch.corrcoef(forged)[0, 1].item() == pytest.approx(0, abs=0.02)


def test_a_clients_noise_is_its_own(scene: AttackerKnowledge):
    forged, _ = Gaussian().forge(scene)
    turned, _ = Gaussian().forge(replace(scene, owner=np.array([7, 3]), own_updates=scene.own_updates.flip(0)))
    assert torch.equal(forged.flip(0), turned)
    alone, _ = Gaussian(add=True).forge(replace(scene, owner=np.array([7]), own_updates=scene.own_updates[1:]))
    assert alone[0].tolist() == pytest.approx((scene.own_updates[1] + forged[1]).tolist())
