import math
import tracemalloc
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
import torch
from people import people

from fedexp.core.errors import ConfigError
from fedexp.core.random_streams import stream
from fedexp.parts.dataset import synthetic
from fedexp.parts.dataset.synthetic import Synthetic, balanced_numbers, gaussian_clouds

HERE = Path()


def made(seed=0, **options):
    return Synthetic(**options).load(HERE, seed)


def test_facts_hold():
    dataset = Synthetic(shape=(3, 4, 5), classes=7, train_size=100, test_size=50, subjects=9)
    facts, data = dataset.facts(HERE), dataset.load(HERE, 0)
    assert data.train.x.shape == (100, 3, 4, 5)
    assert data.train.x.dtype == torch.float32
    assert data.train.y.dtype == torch.int64
    assert facts.shape == (3, 4, 5)
    assert facts.train_size == len(data.train.y)
    assert facts.classes == len(data.class_names) == len(data.train.y.unique())
    assert facts.subjects == len(people(data.train).unique())
    assert data.test.x.shape == (50, 3, 4, 5)


def test_same_seed_same_data():
    first, again, other = made(0), made(0), made(1)
    assert torch.equal(first.train.x, again.train.x)
    assert not torch.equal(first.train.x, other.train.x)
    assert not torch.equal(first.train.x[:2000], first.test.x)


def test_one_size_does_not_disturb_the_other():
    assert torch.equal(made(test_size=10).train.x, made(test_size=20, subjects=3).train.x)


def test_difficulty_zero_is_one_point_a_class():
    data = made(difficulty=0)
    for label in range(10):
        points = data.train.x[data.train.y == label]
        assert torch.equal(points, points[:1].expand_as(points))


@pytest.mark.parametrize("difficulty", [0.5, 1.0, 2.0])
def test_best_rule_errs_as_documented(difficulty):
    """Over many pairs of centres, the nearest one is the wrong one with probability Phi(-2 / difficulty)."""
    data = made(shape=[400], classes=20, train_size=20, test_size=20_000, difficulty=difficulty)
    centres = torch.stack([data.test.x[data.test.y == label].mean(dim=0) for label in range(20)])
    other = (data.test.y + 7) % 20
    nearer = (data.test.x - centres[other]).norm(dim=1) < (data.test.x - centres[data.test.y]).norm(dim=1)
    assert float(nearer.float().mean()) == pytest.approx(NormalDist().cdf(-2 / difficulty), abs=0.02)


def test_clouds_against_the_slow_way(monkeypatch):
    monkeypatch.setattr(synthetic, "CHUNK", 12)
    centres, y, noise = np.array([[0.0, 4.0, 8.0], [1.0, 1.0, 1.0]]), np.array([1, 0, 0, 1, 1, 0, 1]), 0.5
    rng = stream(0, "test")
    slow = [
        [
            (centres[label, place] + noise * rng.standard_normal(dtype=np.float32)) / math.sqrt(1.25)
            for place in range(3)
        ]
        for label in y
    ]
    assert gaussian_clouds(centres, y, noise, stream(0, "test")) == pytest.approx(np.array(slow), abs=1e-6)


def test_balanced_counts():
    assert np.bincount(balanced_numbers(11, 4, stream(0, "test"))).tolist() == [3, 3, 3, 2]


def test_a_million_examples_need_little_beside_themselves():
    tracemalloc.start()
    data = made(train_size=1_000_000, subjects=1_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(people(data.train).unique()) == 1_000_000
    assert peak < 120e6  # 32 MB examples, 8 MB each for labels and subjects, and copies of the latter


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"shape": []}, "shape must have at least one entry"),
        ({"shape": [0]}, r"shape must be a list \(each an integer >= 1\)"),
        ({"classes": 1}, "classes must be an integer >= 2"),
        ({"train_size": 5}, "train_size must be >= classes"),
        ({"subjects": 20_000}, "subjects must be <= train_size"),
        ({"difficulty": -1}, "difficulty must be a number >= 0"),
    ],
)
def test_impossible_options(options, words):
    with pytest.raises(ConfigError, match=words):
        Synthetic(**options)
