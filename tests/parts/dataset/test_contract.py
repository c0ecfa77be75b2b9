"""The digest by which runs are told to have had the same data."""

from dataclasses import replace

import torch

from fedexp.parts.dataset.contract import Data, Split


def data(size: int = 4000) -> Data:
    x = torch.arange(size * 2, dtype=torch.float32).reshape(size, 2)
    split = Split(x, torch.arange(size) % 3)
    return Data(split, split, ("a", "b", "c"))


def test_equal_data_has_one_digest():
    assert data().sha256() == data().sha256()
    assert len(data().sha256()) == 64


def test_a_label_the_normalisation_the_size_and_the_values_each_change_it():
    first = data()
    y, x = first.train.y.clone(), first.train.x.clone()
    y[18] = 2  # was 0
    others = [
        replace(first, train=Split(first.train.x, y)),
        replace(first, scale=255.0),
        replace(first, class_names=("a", "b", "d")),
        replace(first, train=Split(x + 1, first.train.y)),
        replace(first, train=Split(x.int(), first.train.y)),
        replace(first, test=Split(x[:-1], first.train.y[:-1])),
    ]
    assert len({first.sha256(), *(other.sha256() for other in others)}) == 7
