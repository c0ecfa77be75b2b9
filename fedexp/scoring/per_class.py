"""Metrics that follow from how many examples of each class there are, are named, and are right.

Definitions and corner cases are scikit-learn's for classes: macro-F1 is over those that are there or were named,
balanced accuracy over those that are there. So it is of labels here, where scikit-learn counts a missing one as 0.
Sensitivity, specificity and precision are those of the second of two classes, the positive one; of more classes the
means over each of them against the rest, as far as there is something to count (what scikit-learn calls
`zero_division=nan`).
Legend: B batch, K classes (or labels).
"""

import numpy as np
import torch


def per_class_counts(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """True positives, targets and predictions of each class, `[3 K]`."""
    if targets.is_floating_point():
        predicted, present = outputs > 0, targets > 0.5
        return torch.cat([(predicted & present).sum(dim=0), present.sum(dim=0), predicted.sum(dim=0)]).double()
    predicted, counts = outputs.argmax(dim=1), targets.new_zeros((3, outputs.shape[1]), dtype=torch.double)
    counts[0].scatter_add_(0, targets, (predicted == targets).double())  # unlike bincount, no wait for a GPU
    for count, classes in zip(counts[1:], (targets, predicted), strict=True):
        count.scatter_add_(0, classes, torch.ones_like(classes, dtype=torch.double))
    return counts.flatten()


def macro_f1(sums: np.ndarray) -> float:
    """Mean over classes of 2 TP / (targets + predictions), given `per_class_counts` `[3 K]`."""
    correct, present, predicted = sums.reshape(3, -1)
    occurring = present + predicted > 0
    return (
        float((2 * correct[occurring] / (present + predicted)[occurring]).mean()) if occurring.any() else float("nan")
    )


def recalls(sums: np.ndarray) -> np.ndarray:
    """The recall `[K]` of each class, given `per_class_counts`; NaN for a class without targets."""
    correct, present, _ = sums.reshape(3, -1)
    return _divide(correct, present)


def balanced_accuracy(sums: np.ndarray) -> float:
    """The mean recall of the classes that have targets, given `per_class_counts` `[3 K]`."""
    recall = recalls(sums)
    return float(recall[~np.isnan(recall)].mean()) if not np.isnan(recall).all() else float("nan")


def sensitivity(sums: np.ndarray) -> float:
    """TP / targets, given `per_class_counts` `[3 K]` of classes."""
    return _of_positive(recalls(sums))


def specificity(sums: np.ndarray) -> float:
    """TN / (targets of other classes), given `per_class_counts` `[3 K]` of classes."""
    correct, present, predicted = sums.reshape(3, -1)
    negatives = present.sum() - present
    return _of_positive(_divide(negatives - (predicted - correct), negatives))


def precision(sums: np.ndarray) -> float:
    """TP / predictions, given `per_class_counts` `[3 K]` of classes."""
    correct, _, predicted = sums.reshape(3, -1)
    return _of_positive(_divide(correct, predicted))


def _divide(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """The ratios `[K]`, NaN where the denominator is 0."""
    return np.divide(numerator, denominator, out=np.full(len(denominator), np.nan), where=denominator > 0)


def _of_positive(rates: np.ndarray) -> float:
    """The rate of the second of two classes, or the mean of the `rates [K]` that exist; NaN without one."""
    chosen = rates[1:] if len(rates) == 2 else rates[~np.isnan(rates)]
    return float(chosen.mean()) if len(chosen) else float("nan")
