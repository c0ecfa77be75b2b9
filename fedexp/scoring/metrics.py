"""The metrics of `evaluation.metrics`: sums over examples, and the exact values that follow from them.

Any worker computes sums of its own chunk of the examples; they add up to those of all of them. Definitions and corner
cases are scikit-learn's: macro-F1 is over the classes that are there or were named, balanced accuracy over those that
are there, RMSE and R2 are means over the K targets, and R2 of a target that never varies is 1 or 0.
Legend: B batch, K classes (or labels, or numbers to predict), n sums.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch.nn import functional as F

from fedexp.core.errors import ConfigError
from fedexp.parts.dataset.contract import IGNORED, TARGET_NAMES, Facts, Targets

Sums = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def correct_counts(outputs: torch.Tensor, targets: torch.Tensor, k: int = 1) -> torch.Tensor:
    """The number of `targets [B, ...]` among the `k` most likely classes, and the number of targets, `[2]`.

    `outputs` are `[B, *facts.outputs]`. Labels are right or wrong each; ignored tokens do not count.
    """
    if targets.is_floating_point():
        return torch.stack([((outputs > 0) == (targets > 0.5)).sum(), targets.new_full((), targets.numel())]).double()
    if k == 1:
        correct = outputs.argmax(dim=-1) == targets
    else:
        correct = (outputs.topk(min(k, outputs.shape[-1]), dim=-1).indices == targets[..., None]).any(dim=-1)
    return torch.stack([correct.sum(), (targets != IGNORED).sum()]).double()


def top5_counts(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """`correct_counts` for the five most likely classes: `[2]` of `outputs [B, K]` and `targets [B]`."""
    return correct_counts(outputs, targets, 5)


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


def nll_sums(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The summed negative log-likelihood of the tokens that count, and their number, `[2]`, of `outputs [B, L, K]`."""
    flat = targets.flatten()
    losses = F.cross_entropy(outputs.flatten(0, -2), flat, ignore_index=IGNORED, reduction="none")
    return torch.stack([losses.double().sum(), (flat != IGNORED).sum().double()])


def error_sums(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """For each number summed |error|, error**2, target and target**2, then the number of examples, `[4 K + 1]`."""
    error, target = (outputs.double() - targets.double()), targets.double()
    parts = (error.abs(), error.square(), target, target.square())
    return torch.cat([*(part.sum(dim=0) for part in parts), target.new_full((1,), len(target))])


def ratio(sums: np.ndarray) -> float:
    """The ratio of the first to the second of `sums [n]` with n = 2; NaN where the second is 0."""
    return float(sums[0] / sums[1]) if sums[1] else float("nan")


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
    return np.divide(correct, present, out=np.full(len(present), np.nan), where=present > 0)


def balanced_accuracy(sums: np.ndarray) -> float:
    """The mean recall of the classes that have targets, given `per_class_counts` `[3 K]`."""
    recall = recalls(sums)
    return float(recall[~np.isnan(recall)].mean()) if not np.isnan(recall).all() else float("nan")


def perplexity(sums: np.ndarray) -> float:
    """The exponential of the mean negative log-likelihood of a token, of `sums [n]` with n = 2."""
    return float(np.exp(ratio(sums)))


def mae(sums: np.ndarray) -> float:
    """The mean absolute error, given `error_sums` `[4 K + 1]`."""
    return float((sums[: len(sums) // 4] / sums[-1]).mean())


def rmse(sums: np.ndarray) -> float:
    """The mean over the numbers of the root mean squared error, given `error_sums` `[4 K + 1]`."""
    squared = sums[:-1].reshape(4, -1)[1]
    return float(np.sqrt(squared / sums[-1]).mean())


def r2(sums: np.ndarray) -> float:
    """The mean of 1 - (squared error) / (squared deviation from the mean), given `error_sums` `[4 K + 1]`.

    NaN for fewer than two examples.
    """
    if sums[-1] < 2:
        return float("nan")
    _, squared, total, squares = sums[:-1].reshape(4, -1)
    varied = np.maximum(squares - total**2 / sums[-1], 0.0)
    flat = np.where(squared == 0, 1.0, 0.0)
    return float(np.where(varied > 0, 1 - squared / np.where(varied > 0, varied, 1.0), flat).mean())


@dataclass(frozen=True)
class Metric:
    """A metric: its sums, the value computed from them (None: one for each class), and the targets that it suits."""

    sums: Sums
    value: Callable[[np.ndarray], float] | None
    takes: tuple[Targets, ...]


CLASSES: tuple[Targets, ...] = ("class", "labels")
METRICS: Mapping[str, Metric] = {
    "accuracy": Metric(correct_counts, ratio, ("class", "tokens", "labels")),
    "top5": Metric(top5_counts, ratio, ("class", "tokens")),
    "macro_f1": Metric(per_class_counts, macro_f1, CLASSES),
    "balanced_accuracy": Metric(per_class_counts, balanced_accuracy, ("class",)),
    "class_recall": Metric(per_class_counts, None, CLASSES),
    "perplexity": Metric(nll_sums, perplexity, ("tokens",)),
    "mae": Metric(error_sums, mae, ("numbers",)),
    "rmse": Metric(error_sums, rmse, ("numbers",)),
    "r2": Metric(error_sums, r2, ("numbers",)),
}


def refuse(names: tuple[str, ...], facts: Facts) -> None:
    """Raises ConfigError if a metric does not suit the dataset's targets."""
    for name in names:
        if facts.targets not in METRICS[name].takes:
            fitting = [candidate for candidate, metric in METRICS.items() if facts.targets in metric.takes]
            raise ConfigError(
                f"evaluation.metrics must suit targets that are {TARGET_NAMES[facts.targets]}, got {name}; use some of "
                f"{', '.join(fitting)}"
            )


@dataclass(frozen=True)
class MetricSet:
    """The metrics of a run, the main one first, and the names of the K classes."""

    names: tuple[str, ...]
    class_names: tuple[str, ...]

    @property
    def main(self) -> str:
        """The metric that stop rules, tables and pictures are about."""
        return self.names[0]

    @cached_property
    def _slices(self) -> dict[Sums, slice]:
        """The slice of each kind of sums, each computed once."""
        classes, slices, start = len(self.class_names), {}, 0
        widths = {
            correct_counts: 2,
            top5_counts: 2,
            nll_sums: 2,
            per_class_counts: 3 * classes,
            error_sums: 4 * classes + 1,
        }
        for kind in dict.fromkeys(METRICS[name].sums for name in self.names):
            slices[kind] = slice(start, start + widths[kind])
            start += widths[kind]
        return slices

    @property
    def accuracy(self) -> "MetricSet":
        """A metric set of accuracy alone, for measurements that need it whatever the main metric is."""
        return MetricSet(("accuracy",), self.class_names)

    @property
    def width(self) -> int:
        """The number n of sums."""
        return max(part.stop for part in self._slices.values())

    def sums(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The sums `[n]`, float64, of `outputs [B, *facts.outputs]` and `targets [B, ...]`."""
        return torch.cat([kind(outputs, targets) for kind in self._slices])

    def values(self, sums: np.ndarray) -> dict[str, float]:
        """Every metric by its name, from the `sums [n]` of all examples; recalls as `recall.CLASS`."""
        results: dict[str, float] = {}
        for name in self.names:
            metric, part = METRICS[name], sums[self._slices[METRICS[name].sums]]
            if metric.value is None:
                results |= {
                    f"recall.{class_name}": float(recall)
                    for class_name, recall in zip(self.class_names, recalls(part), strict=True)
                }
            else:
                results[name] = metric.value(part)
        return results

    def blank(self, kind: str) -> dict[str, None]:
        """The empty recall cells of a round that is not evaluated; other columns need none."""
        recalls = [f"recall.{class_name}" for class_name in self.class_names] if "class_recall" in self.names else []
        return {f"{kind}_{name}": None for name in recalls}

    def main_value(self, sums: torch.Tensor) -> float:
        """The main metric, from what a scorer sums up, `[3 + n]`."""
        return self.values(sums[3:].cpu().numpy())[self.main]
