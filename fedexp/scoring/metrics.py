"""The metrics of `evaluation.metrics`, exact over all examples.

Most are sums over examples and the values that follow from them: any worker computes sums of its own chunk of the
examples; they add up to those of all of them. A few, and a user's own, need the probabilities of all examples together;
only for them are the outputs kept. Definitions are scikit-learn's: RMSE and R2 are means over the K targets, and R2 of
a target that never varies is 1 or 0. Where a label is missing, means over labels leave it out (scikit-learn counts 0).
Legend: B batch, S examples, K classes (or labels, or numbers to predict), n sums.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch.nn import functional as F

from fedexp.core.errors import ConfigError
from fedexp.maths.curve_metrics import metric_name
from fedexp.parts.dataset.contract import IGNORED, TARGET_NAMES, Facts, Targets
from fedexp.scoring.calibration import BINS, brier_sums, calibration_error, calibration_sums
from fedexp.scoring.own_metric import OwnMetric
from fedexp.scoring.per_class import (
    balanced_accuracy,
    macro_f1,
    per_class_counts,
    precision,
    recalls,
    sensitivity,
    specificity,
)
from fedexp.scoring.ranking import auprc, auroc, import_scores

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
    varied = squares - total**2 / sums[-1]
    varies = varied > 1e-12 * squares  # more than rounding leaves of a target that never varies
    return float(np.where(varies, 1 - squared / np.where(varies, varied, 1.0), squared == 0).mean())


@dataclass(frozen=True)
class Metric:
    """A metric: its sums, the value computed from them, and the targets that it suits.

    Without sums the value is computed from all probabilities `[S, K]` and targets. Without a value there is no single
    number: a class has one each, or a table is made at the end of the run.
    """

    sums: Sums | None
    value: Callable[..., float] | None
    takes: tuple[Targets, ...]


CLASS: tuple[Targets, ...] = ("class",)
CLASSES: tuple[Targets, ...] = ("class", "labels")
METRICS: Mapping[str, Metric] = {
    "accuracy": Metric(correct_counts, ratio, ("class", "tokens", "labels")),
    "top5": Metric(top5_counts, ratio, ("class", "tokens")),
    "macro_f1": Metric(per_class_counts, macro_f1, CLASSES),
    "balanced_accuracy": Metric(per_class_counts, balanced_accuracy, CLASS),
    "class_recall": Metric(per_class_counts, None, CLASSES),
    "sensitivity": Metric(per_class_counts, sensitivity, CLASS),
    "specificity": Metric(per_class_counts, specificity, CLASS),
    "precision": Metric(per_class_counts, precision, CLASS),
    "auroc": Metric(None, auroc, CLASSES),
    "auprc": Metric(None, auprc, CLASSES),
    "brier": Metric(brier_sums, ratio, CLASS),
    "ece": Metric(calibration_sums, calibration_error, CLASS),
    "confusion_matrix": Metric(None, None, CLASS),
    "perplexity": Metric(nll_sums, perplexity, ("tokens",)),
    "mae": Metric(error_sums, mae, ("numbers",)),
    "rmse": Metric(error_sums, rmse, ("numbers",)),
    "r2": Metric(error_sums, r2, ("numbers",)),
}


def find_metric(entry: str) -> Metric:
    """The metric of an entry of `evaluation.metrics`: a built-in one, or the user's `module:function`."""
    return METRICS.get(entry) or Metric(None, OwnMetric(entry), CLASSES)


def refuse(entries: tuple[str, ...], facts: Facts) -> None:
    """Raises ConfigError if a metric does not suit the dataset's targets, or is a function that cannot be imported."""
    for entry in entries:
        if facts.targets not in find_metric(entry).takes:
            fitting = [candidate for candidate, metric in METRICS.items() if facts.targets in metric.takes]
            raise ConfigError(
                f"evaluation.metrics must suit targets that are {TARGET_NAMES[facts.targets]}, got {entry}; use some "
                f"of {', '.join(fitting)}"
            )
        if entry not in METRICS:
            OwnMetric(entry).function()
        if entry in ("auroc", "auprc"):
            import_scores()


def probabilities(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The probabilities `[B, K]`, float64, of logits `outputs [B, K]` of classes or, by their targets, of labels."""
    return outputs.double().sigmoid() if targets.is_floating_point() else outputs.double().softmax(dim=1)


@dataclass(frozen=True)
class MetricSet:
    """The metrics of a run as `evaluation.metrics` names them, the main one first, and the names of the K classes."""

    entries: tuple[str, ...]
    class_names: tuple[str, ...]

    @property
    def main(self) -> str:
        """The metric that stop rules, tables and pictures are about."""
        return metric_name(self.entries[0])

    @cached_property
    def _metrics(self) -> dict[str, Metric]:
        return {metric_name(entry): find_metric(entry) for entry in self.entries}

    @cached_property
    def _slices(self) -> dict[Sums, slice]:
        """The slice of each kind of sums, each computed once."""
        classes, slices, start = len(self.class_names), {}, 0
        widths = {
            correct_counts: 2,
            top5_counts: 2,
            nll_sums: 2,
            brier_sums: 2,
            calibration_sums: 3 * BINS,
            per_class_counts: 3 * classes,
            error_sums: 4 * classes + 1,
        }
        for kind in dict.fromkeys(metric.sums for metric in self._metrics.values() if metric.sums is not None):
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
        return max((part.stop for part in self._slices.values()), default=0)

    @cached_property
    def kept_outputs(self) -> int:
        """How many probabilities of an example are kept: K if a metric needs them all together, else 0."""
        is_needed = [metric.sums is None and metric.value is not None for metric in self._metrics.values()]
        return len(self.class_names) * any(is_needed)

    def sums(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The sums `[n]`, float64, of `outputs [B, *facts.outputs]` and `targets [B, ...]`.

        Behind them come the probabilities of one example after another, where they are kept.
        """
        parts = [kind(outputs, targets) for kind in self._slices]
        parts += [probabilities(outputs, targets).flatten()] if self.kept_outputs else []
        return torch.cat(parts)

    def values(
        self, sums: np.ndarray, probabilities: np.ndarray | None = None, targets: np.ndarray | None = None
    ) -> dict[str, float]:
        """Every metric by its name, from the `sums [n]` of all examples; recalls as `recall.CLASS`.

        `probabilities [S, K]` and `targets [S, ...]` are asked for where they are kept. NaN: undefined.
        """
        results: dict[str, float] = {}
        for name, metric in self._metrics.items():
            if metric.sums is None:
                results |= {} if metric.value is None else {name: metric.value(probabilities, targets)}
            elif metric.value is None:
                by_class = zip(self.class_names, recalls(sums[self._slices[metric.sums]]), strict=True)
                results |= {f"recall.{class_name}": float(recall) for class_name, recall in by_class}
            else:
                results[name] = metric.value(sums[self._slices[metric.sums]])
        return results

    @property
    def value_names(self) -> list[str]:
        """The names of all that `values` gives, in its order."""
        several = {"class_recall": [f"recall.{name}" for name in self.class_names], "confusion_matrix": []}
        return [name for entry in self.entries for name in several.get(entry, [metric_name(entry)])]

    def blank(self, kind: str) -> dict[str, None]:
        """The empty recall cells of a round that is not evaluated; other columns need none."""
        return {f"{kind}_{name}": None for name in self.value_names if name.startswith("recall.")}
