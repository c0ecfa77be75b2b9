"""How far probabilities can be believed: the Brier score and the expected calibration error (ECE).

Sources: Brier, "Verification of forecasts expressed in terms of probability" (Monthly Weather Review 78, 1950); Guo et
al., "On Calibration of Modern Neural Networks" (ICML 2017, arXiv 1706.04599): ECE = sum over bins m of
(n_m / n) |accuracy_m - confidence_m|, where the confidence of an example is the probability of the class that the model
names, and bin m of 15 holds confidences in ((m - 1) / 15, m / 15].

Of two classes the Brier score is the mean of (p - y)**2 for the second of them, from 0 to 1; of more the mean of the
sum over classes, from 0 to 2.
Legend: B batch, K classes.
"""

import numpy as np
import torch

BINS = 15


def one_hot(targets: torch.Tensor, classes: int) -> torch.Tensor:
    """1 in the column of each target, float64 `[B, classes]`, of `targets [B]`; unlike PyTorch's without a wait."""
    return (targets[:, None] == torch.arange(classes, device=targets.device)).double()


def brier_sums(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The summed Brier score of the examples, and their number, `[2]`, of logits `outputs [B, K]`."""
    error = outputs.double().softmax(dim=1) - one_hot(targets, outputs.shape[1])
    squared = error.square().sum() / (2 if outputs.shape[1] == 2 else 1)
    return torch.stack([squared, squared.new_full((), len(targets))])


def calibration_sums(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Of each bin the confidences, the right answers and the examples, `[3 BINS]`, of logits `outputs [B, K]`."""
    confidence, predicted = outputs.double().softmax(dim=1).max(dim=1)
    bins = ((confidence * BINS).ceil().long() - 1).clamp(0, BINS - 1)
    in_bin = one_hot(bins, BINS)  # unlike scatter_add, a product adds in one order on a GPU, too
    rows = torch.stack([confidence, (predicted == targets).double(), torch.ones_like(confidence)])
    return (rows @ in_bin).flatten()


def calibration_error(sums: np.ndarray) -> float:
    """The expected calibration error, given `calibration_sums` `[3 BINS]`; NaN without examples."""
    confidence, correct, count = sums.reshape(3, BINS)
    return float(np.abs(correct - confidence).sum() / count.sum()) if count.any() else float("nan")
