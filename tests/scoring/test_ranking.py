"""AUROC and AUPRC by hand, and as scikit-learn has them."""

import numpy as np
import pytest
from sklearn import metrics as sk

from fedexp.scoring.ranking import auprc, auroc


def test_two_classes_by_hand():
    """Of 2 * 2 pairs three are in order. Precision is 1 at the first positive and 2/3 at the second."""
    positive = np.array([0.8, 0.4, 0.6, 0.2])
    probabilities, targets = np.column_stack([1 - positive, positive]), np.array([1, 1, 0, 0])
    assert auroc(probabilities, targets) == 3 / 4
    assert auprc(probabilities, targets) == pytest.approx((1 + 2 / 3) / 2)


def test_more_classes_are_each_against_the_rest():
    rng = np.random.default_rng(2)
    probabilities, targets = rng.dirichlet(np.ones(4), size=60), rng.integers(4, size=60)
    expected = sk.roc_auc_score(targets, probabilities, multi_class="ovr", average="macro")
    assert auroc(probabilities, targets) == pytest.approx(expected)
    one_hot = np.eye(4)[targets]
    assert auprc(probabilities, targets) == pytest.approx(sk.average_precision_score(one_hot, probabilities))


def test_a_class_that_is_not_there_does_not_count():
    rng = np.random.default_rng(2)
    probabilities, targets = rng.dirichlet(np.ones(4), size=60), rng.integers(3, size=60)
    each = [sk.roc_auc_score(targets == number, probabilities[:, number]) for number in range(3)]
    assert auroc(probabilities, targets) == pytest.approx(np.mean(each))


def test_answers_that_are_no_numbers_have_no_rank():
    probabilities, targets = np.array([[0.5, 0.5], [np.nan, np.nan], [0.2, 0.8]]), np.array([0, 1, 1])
    assert np.isnan([auroc(probabilities, targets), auprc(probabilities, targets)]).all()


def test_labels_are_told_apart_one_by_one():
    rng = np.random.default_rng(2)
    probabilities, targets = rng.random((50, 3)), (rng.random((50, 3)) < 0.4).astype(np.float32)
    assert auroc(probabilities, targets) == pytest.approx(sk.roc_auc_score(targets, probabilities, average="macro"))


@pytest.mark.parametrize("classes", [2, 3])
def test_of_one_class_alone_they_are_undefined(classes: int):
    probabilities, targets = np.full((5, classes), 1 / classes), np.ones(5, dtype=np.int64)
    assert np.isnan(auroc(probabilities, targets))
    assert np.isnan(auprc(probabilities, targets))
