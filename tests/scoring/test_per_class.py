"""Sensitivity, specificity and precision by hand, and as scikit-learn defines them for more than two classes."""

import numpy as np
import pytest
import torch
from sklearn import metrics as sk

from fedexp.scoring.per_class import per_class_counts, precision, sensitivity, specificity


def counts(answers: list[int], targets: list[int], classes: int) -> np.ndarray:
    outputs = torch.nn.functional.one_hot(torch.tensor(answers), classes).float()
    return per_class_counts(outputs, torch.tensor(targets)).numpy()


def test_of_two_classes_the_second_is_the_positive_one():
    """3 found, 1 missed, 2 false alarms, 4 rightly left alone."""
    sums = counts([1, 1, 1, 0, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0, 0, 0, 0, 0], 2)
    assert sensitivity(sums) == 3 / 4
    assert specificity(sums) == 4 / 6
    assert precision(sums) == 3 / 5


def test_of_more_classes_they_are_means_over_what_can_be_counted():
    rng = np.random.default_rng(5)
    targets, answers = rng.integers(4, size=80), rng.integers(3, size=80)  # class 3 is never named, class 4 not there
    sums = counts(answers.tolist(), targets.tolist(), 5)
    zero = {"average": "macro", "zero_division": np.nan, "labels": np.arange(5)}
    assert sensitivity(sums) == pytest.approx(sk.recall_score(targets, answers, **zero))
    assert precision(sums) == pytest.approx(sk.precision_score(targets, answers, **zero))
    against_rest = [sk.recall_score(targets != number, answers != number) for number in range(5)]
    assert specificity(sums) == pytest.approx(np.mean(against_rest))


def test_what_nobody_can_count_is_undefined():
    assert np.isnan(precision(counts([0, 0], [0, 1], 2)))
    assert np.isnan(sensitivity(counts([0, 1], [0, 0], 2)))
    assert np.isnan(specificity(counts([0, 1], [1, 1], 2)))
    assert sensitivity(counts([0, 1], [1, 1], 2)) == 0.5
