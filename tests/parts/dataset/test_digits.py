import hashlib

import numpy as np
import pytest
import torch

from fedexp.core.errors import ConfigError
from fedexp.parts.dataset import digits
from fedexp.parts.dataset.digits import Digits, held_out_images


def test_published_images_in_a_fixed_split(tmp_path):
    data = Digits().load(tmp_path, 0)
    assert data.train.x.shape == (1437, 1, 8, 8)
    assert data.train.x.dtype == torch.uint8
    assert int(data.train.x.max()) == 16
    assert data.test.y.bincount().tolist() == [36, 36, 36, 36, 37, 36, 36, 36, 35, 36]
    pixels = data.train.x / data.scale
    assert (float(pixels.mean()), float(pixels.std())) == pytest.approx((data.mean[0], data.std[0]), abs=1e-4)
    assert Digits().facts(tmp_path).train_size == len(data.train.y)


def test_split_never_moves(tmp_path):
    labels = digits._read()["y"]
    chosen = np.flatnonzero(held_out_images(labels))
    assert chosen[:8].tolist() == [19, 24, 26, 28, 38, 39, 40, 41]
    found = hashlib.sha256(chosen.astype("<i8").tobytes()).hexdigest()
    assert found == "8d05b117b0fdc7201e0b347ddc516e72f3b706d2937fb65f4effa6f4ef279c72"
    first, second = (Digits().load(tmp_path, seed) for seed in (0, 1))
    assert torch.equal(first.test.x, second.test.x)


def test_stratified_by_hand():
    labels = np.repeat([0, 1], [10, 5])
    held_out = held_out_images(labels)
    assert held_out[:10].sum() == 2
    assert held_out[10:].sum() == 1


def test_verify(monkeypatch, tmp_path):
    assert len(Digits().verify(tmp_path)) == 1
    monkeypatch.setattr(digits, "SHA256", "0" * 64)
    with pytest.raises(ConfigError, match="must have 0000"):
        Digits().verify(tmp_path)
