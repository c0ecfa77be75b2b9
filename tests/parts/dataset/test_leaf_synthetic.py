from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fedexp.parts.dataset import check_data
from fedexp.parts.dataset.leaf_synthetic import CLASSES, FEATURES, LeafSynthetic, draw_examples, linear_labels, sizes


def test_labels_by_hand():
    weights, bias = np.array([[1.0, -1.0], [0.0, 2.0]]), np.array([0.5, 0.0])
    x = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.25], [0.0, 0.2]])  # scores 1.5 -1, .5 2, .5 .5, .5 .4
    assert linear_labels(x, weights, bias).tolist() == [0, 1, 0, 0]


def test_features_have_the_variances_of_the_paper():
    x = draw_examples(200_000, np.array([3.0, 0.0, -1.0]), np.random.default_rng(0))
    assert x.mean(axis=0) == pytest.approx([3, 0, -1], abs=0.01)
    assert x.var(axis=0) == pytest.approx([1, 2**-1.2, 3**-1.2], rel=0.02)


def test_sizes_are_lognormal_from_50_on():
    found = sizes(20_000, 0)
    assert found.min() == 50
    assert np.median(found - 50) == pytest.approx(np.exp(4), rel=0.05)
    assert np.log(np.quantile(found - 50, 0.8413)) == pytest.approx(6, abs=0.1)  # one deviation above the mean of 4


def test_devices_hold_a_tenth_out_and_are_the_same_for_every_seed(tmp_path):
    dataset = LeafSynthetic()
    data, facts = dataset.load(tmp_path, 0), dataset.facts(tmp_path)
    check_data.refuse(dataset, facts, data)
    people: Any = (data.train.subject, data.test.subject)
    train, test = (each.bincount(minlength=30).numpy() for each in people)
    assert np.array_equal(train + test, sizes(30, 0))
    assert np.array_equal(train, (0.9 * (train + test)).astype(int))
    assert torch.equal(data.train.x, dataset.load(tmp_path, 1).train.x)
    assert not torch.equal(data.train.x[:50], LeafSynthetic(draw=1).load(tmp_path, 0).train.x[:50])


def centres(**options) -> np.ndarray:
    """The mean of each device's examples, `[devices, d]`."""
    data = LeafSynthetic(devices=200, **options).load(Path(), 0)
    return np.stack([data.train.x[data.train.subject == device].mean(dim=0).numpy() for device in range(200)])


def test_beta_moves_whole_devices_and_iid_none():
    last = slice(FEATURES // 2, None)  # features that vary little within a device
    spread = {beta: centres(beta=beta)[:, last].mean(axis=1).std() for beta in (0.0, 2.0)}
    assert spread[0.0] < 0.3  # the mean of 30 standard normal numbers: 0.18
    assert spread[2.0] == pytest.approx(2.0, rel=0.2)
    assert np.abs(centres(iid=True)[:, last]).max() < 0.2


def test_devices_share_their_model_where_they_are_alike(tmp_path):
    data = LeafSynthetic(iid=True, devices=5).load(tmp_path, 0)
    x, y = data.train.x.double(), data.train.y
    model = torch.linalg.lstsq(torch.cat([x, torch.ones(len(x), 1)], dim=1), torch.eye(CLASSES).double()[y]).solution
    guessed = (torch.cat([data.test.x.double(), torch.ones(len(data.test.x), 1)], dim=1) @ model).argmax(dim=1)
    assert (guessed == data.test.y).double().mean() > 0.75
