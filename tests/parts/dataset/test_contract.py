"""What every dataset must keep, found from conf/, and the digest by which runs are told to have had the same data."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from composing import experiment, options

from fedexp.core.errors import ConfigError
from fedexp.parts.dataset import check_data
from fedexp.parts.dataset.contract import Data, Split, split_by_mask

GIVEN = {
    "huggingface": ("dataset.path={}/pets",),
    "leaf": ("dataset.path={}",),
    "npz": ("dataset.path={}/mine.npz",),
    "table": ("dataset.file={}/mine.csv", "dataset.target=sick"),
    "torchvision": ("dataset.name=FashionMNIST",),
}
NO_FILES = ("diabetes", "digits", "leaf_synthetic", "synthetic", "text")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("dataset=har",), "nor are mean and deviation of all training people"),
        (("dataset=har", "dataset.representation=features"), ""),
        (("dataset=diabetes", "loss=mse"), "nor are means and deviations of all training patients"),
        (("dataset=torchvision", "dataset.name=KMNIST"), ""),
        (("dataset=torchvision", "dataset.name=KMNIST", "dataset.normalise=standard"), "nor are mean and deviation of"),
        (("dataset=emnist_digits", "dataset.normalise=per_channel"), "nor are mean and deviation of all training imag"),
        (("dataset=emnist_digits", "dataset.normalise=raw"), ""),
        (("dataset=mnist", "dataset.normalise=standard"), ""),  # its moments are published
    ],
)
def test_what_was_measured_on_all_training_examples_is_told(words: tuple[str, ...], told: str):
    leaks = experiment(*words).dataset.leaks()
    assert leaks.startswith(told)
    assert bool(leaks) == bool(told)


def data(size: int = 4000) -> Data:
    x = torch.arange(size * 2, dtype=torch.float32).reshape(size, 2)
    split = Split(x, torch.arange(size) % 3)
    return Data(split, split, ("a", "b", "c"))


def test_arrays_are_parted_by_a_mask():
    test = np.array([False, True, False])
    train, held = split_by_mask(test, np.array([[1], [2], [3]]), np.array([7, 8, 9]), np.array([0, 0, 1]))
    assert (train.x.tolist(), held.x.tolist()) == ([[1], [3]], [[2]])
    assert (train.y.tolist(), held.y.tolist()) == ([7, 9], [8])
    assert train.subject is not None
    assert train.subject.tolist() == [0, 1]
    assert split_by_mask(test, np.zeros((3, 1)), np.zeros(3))[1].subject is None


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


@pytest.mark.parametrize("option", options("dataset"))
def test_it_says_what_is_missing_or_loads_what_its_facts_say(option: str, tmp_path: Path):
    """None of the published archives lies in an empty folder."""
    dataset = experiment(f"dataset={option}", *(word.format(tmp_path) for word in GIVEN.get(option, ()))).dataset
    try:
        dataset.require(tmp_path)
    except ConfigError as error:
        assert option not in NO_FILES
        assert str(tmp_path) in str(error)  # noqa: PT017 - either outcome is right
        return
    assert option in NO_FILES
    facts, loaded = check_data.checked_facts(dataset, tmp_path), dataset.load(tmp_path, 0)
    check_data.refuse(dataset, facts, loaded)
    if facts.targets == "class":
        assert set(loaded.train.y.tolist()) == set(range(facts.classes))
