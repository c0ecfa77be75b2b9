"""Brier score and calibration error by hand."""

import numpy as np
import pytest
import torch
from sklearn.metrics import brier_score_loss

from fedexp.scoring.calibration import BINS, brier_sums, calibration_error, calibration_sums
from fedexp.scoring.metrics import ratio


def logits(*probabilities: list[float]) -> torch.Tensor:
    return torch.tensor(probabilities, dtype=torch.float64).log()


def test_the_brier_score_of_two_classes():
    """Errors of 0.25, 0.25 and 0.9: (0.0625 + 0.0625 + 0.81) / 3."""
    outputs, targets = logits([0.75, 0.25], [0.25, 0.75], [0.9, 0.1]), torch.tensor([0, 1, 1])
    found = ratio(brier_sums(outputs, targets).numpy())
    assert found == pytest.approx(0.935 / 3)
    assert found == pytest.approx(brier_score_loss([0, 1, 1], [0.25, 0.75, 0.1]))


def test_the_brier_score_of_three_classes_is_a_sum_over_them():
    """A third each: (2/3)**2 + 2 (1/3)**2."""
    assert ratio(brier_sums(torch.zeros(1, 3), torch.tensor([2])).numpy()) == pytest.approx(2 / 3)


def test_the_calibration_error():
    """Four examples of confidence 0.75, half of them right; two of 0.55, both right: 4/6 * 0.25 + 2/6 * 0.45."""
    outputs = logits(*[[0.75, 0.25]] * 4, *[[0.45, 0.55]] * 2)
    sums = calibration_sums(outputs, torch.tensor([0, 0, 1, 1, 1, 1])).numpy()
    assert calibration_error(sums) == pytest.approx(4 / 6 * 0.25 + 2 / 6 * 0.45)


def test_errors_of_one_bin_cancel_and_those_of_two_do_not():
    """0.60 and 0.62 are on either side of 9/15; of 0.61 and 0.62 one is right, which is 0.115 too few."""
    apart = calibration_sums(logits([0.59, 0.41], [0.62, 0.38]), torch.tensor([0, 1])).numpy()
    assert calibration_error(apart) == pytest.approx((0.41 + 0.62) / 2)
    together = calibration_sums(logits([0.61, 0.39], [0.62, 0.38]), torch.tensor([0, 1])).numpy()
    assert calibration_error(together) == pytest.approx(0.115)


def test_bins_add_up_over_chunks_and_hold_certainty():
    outputs, targets = torch.tensor([[900.0, 0.0], [0.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1, 1])
    whole = calibration_sums(outputs, targets)
    assert torch.allclose(
        whole, calibration_sums(outputs[:1], targets[:1]) + calibration_sums(outputs[1:], targets[1:])
    )
    assert whole.view(3, BINS)[2].nonzero().flatten().tolist() == [7, 10, 14]  # of confidences 1/2, 0.73 and 1
    assert np.isnan(calibration_error(np.zeros(3 * BINS)))
