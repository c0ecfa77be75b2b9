"""Metrics of how examples are ranked by a probability, for each class as scikit-learn computes them.

Of two classes the second is the positive one; of more, and of labels, they are the mean over each against the rest (one
versus rest, macro), as far as the data hold both. Where they hold both of none, the metric is undefined: NaN.
Legend: S examples, K classes (or labels).
"""

from collections.abc import Callable

import numpy as np

Score = Callable[[np.ndarray, np.ndarray], float]


def import_scores() -> None:
    """Imports scikit-learn, which takes a second, so that no round's clock counts it."""
    import sklearn.metrics  # noqa: F401


def auroc(probabilities: np.ndarray, targets: np.ndarray) -> float:
    """The area under the ROC curve, of `probabilities [S, K]` and `targets [S]` or `[S, K]`."""
    from sklearn.metrics import roc_auc_score

    return mean_over_classes(roc_auc_score, probabilities, targets)


def auprc(probabilities: np.ndarray, targets: np.ndarray) -> float:
    """The area under the precision-recall curve, of `probabilities [S, K]` and `targets [S]` or `[S, K]`.

    It is computed as average precision.
    """
    from sklearn.metrics import average_precision_score

    return mean_over_classes(average_precision_score, probabilities, targets)


def mean_over_classes(score: Score, probabilities: np.ndarray, targets: np.ndarray) -> float:
    """The mean of `score(positive [S], probability [S])` over the classes that are to be told from others.

    NaN where a probability is: NaN has no rank.
    """
    if np.isnan(probabilities).any():
        return float("nan")
    classes = range(probabilities.shape[1])
    if targets.ndim == 1:
        positives = {number: targets == number for number in (classes[1:] if len(classes) == 2 else classes)}
    else:
        positives = {number: targets[:, number] > 0.5 for number in classes}
    scores = [
        score(positive, probabilities[:, number])
        for number, positive in positives.items()
        if positive.any() and not positive.all()
    ]
    return float(np.mean(scores)) if scores else float("nan")
