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
from fedexp.parts.dataset.contract import IGNORED, IN_WORDS, Facts, Targets

Sums = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def hits(outputs: torch.Tensor, targets: torch.Tensor, most: int = 1) -> torch.Tensor:
    """The number of `targets [B, ...]` among the `k` most likely classes, and the number of targets, `[2]`.

    `outputs` are `[B, *facts.outputs]`. Labels are right or wrong each; ignored tokens do not count.
    """
    if targets.is_floating_point():
        return torch.stack([((outputs > 0) == (targets > 0.5)).sum(), targets.new_full((), targets.numel())]).double()
    if most == 1:
        right = outputs.argmax(dim=-1) == targets
    else:
        right = (outputs.topk(min(most, outputs.shape[-1]), dim=-1).indices == targets[..., None]).any(dim=-1)
    return torch.stack([right.sum(), (targets != IGNORED).sum()]).double()


def hits_of_five(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """`correct_counts` for the five most likely classes: `[2]` of `outputs [B, K]` and `targets [B]`."""
    return hits(outputs, targets, 5)


def classwise(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """True positives, targets and predictions of each class, `[3 K]`."""
    if targets.is_floating_point():
        named, there = outputs > 0, targets > 0.5
        return torch.cat([(named & there).sum(dim=0), there.sum(dim=0), named.sum(dim=0)]).double()
    named, counts = outputs.argmax(dim=1), targets.new_zeros((3, outputs.shape[1]), dtype=torch.double)
    counts[0].scatter_add_(0, targets, (named == targets).double())  # unlike bincount, no wait for a GPU
    for count, each in zip(counts[1:], (targets, named), strict=True):
        count.scatter_add_(0, each, torch.ones_like(each, dtype=torch.double))
    return counts.flatten()


def surprise(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The summed negative log-likelihood of the tokens that count, and their number, `[2]`, of `outputs [B, L, K]`."""
    flat = targets.flatten()
    each = F.cross_entropy(outputs.flatten(0, -2), flat, ignore_index=IGNORED, reduction="none")
    return torch.stack([each.double().sum(), (flat != IGNORED).sum().double()])


def misses(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """For each number summed |error|, error**2, target and target**2, then the number of examples, `[4 K + 1]`."""
    error, target = (outputs.double() - targets.double()), targets.double()
    parts = (error.abs(), error.square(), target, target.square())
    return torch.cat([*(part.sum(dim=0) for part in parts), target.new_full((1,), len(target))])


def share(sums: np.ndarray) -> float:
    """The ratio of the first to the second of `sums [n]` with n = 2; NaN where the second is 0."""
    return float(sums[0] / sums[1]) if sums[1] else float("nan")


def macro_f1(sums: np.ndarray) -> float:
    """Mean over classes of 2 TP / (targets + predictions), given `per_class_counts` `[3 K]`."""
    right, there, named = sums.reshape(3, -1)
    known = there + named > 0
    return float((2 * right[known] / (there + named)[known]).mean()) if known.any() else float("nan")


def recalls(sums: np.ndarray) -> np.ndarray:
    """The recall `[K]` of each class, given `per_class_counts`; NaN for a class without targets."""
    right, there, _ = sums.reshape(3, -1)
    return np.divide(right, there, out=np.full(len(there), np.nan), where=there > 0)


def balanced_accuracy(sums: np.ndarray) -> float:
    """The mean recall of the classes that have targets, given `per_class_counts` `[3 K]`."""
    found = recalls(sums)
    return float(found[~np.isnan(found)].mean()) if not np.isnan(found).all() else float("nan")


def perplexity(sums: np.ndarray) -> float:
    """The exponential of the mean negative log-likelihood of a token, of `sums [n]` with n = 2."""
    return float(np.exp(share(sums)))


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
    "accuracy": Metric(hits, share, ("class", "tokens", "labels")),
    "top5": Metric(hits_of_five, share, ("class", "tokens")),
    "macro_f1": Metric(classwise, macro_f1, CLASSES),
    "balanced_accuracy": Metric(classwise, balanced_accuracy, ("class",)),
    "class_recall": Metric(classwise, None, CLASSES),
    "perplexity": Metric(surprise, perplexity, ("tokens",)),
    "mae": Metric(misses, mae, ("numbers",)),
    "rmse": Metric(misses, rmse, ("numbers",)),
    "r2": Metric(misses, r2, ("numbers",)),
}


def refuse(names: tuple[str, ...], facts: Facts) -> None:
    """Raises ConfigError if a metric does not suit the dataset's targets."""
    for name in names:
        if facts.targets not in METRICS[name].takes:
            fitting = [other for other, metric in METRICS.items() if facts.targets in metric.takes]
            raise ConfigError(
                f"evaluation.metrics must suit targets that are {IN_WORDS[facts.targets]}, got {name}; use some of "
                f"{', '.join(fitting)}"
            )


@dataclass(frozen=True)
class Gauge:
    """The metrics of a run, the main one first, and the names of the K classes."""

    names: tuple[str, ...]
    class_names: tuple[str, ...]

    @property
    def main(self) -> str:
        """The metric that stop rules, tables and pictures are about."""
        return self.names[0]

    @cached_property
    def _kinds(self) -> dict[Sums, slice]:
        """The slice of each kind of sums, each computed once."""
        classes, places, start = len(self.class_names), {}, 0
        widths = {hits: 2, hits_of_five: 2, surprise: 2, classwise: 3 * classes, misses: 4 * classes + 1}
        for kind in dict.fromkeys(METRICS[name].sums for name in self.names):
            places[kind] = slice(start, start + widths[kind])
            start += widths[kind]
        return places

    @property
    def accuracy(self) -> "Gauge":
        """A metric set of accuracy alone, for measurements that need it whatever the main metric is."""
        return Gauge(("accuracy",), self.class_names)

    @property
    def width(self) -> int:
        """The number n of sums."""
        return max(place.stop for place in self._kinds.values())

    def sums(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The sums `[n]`, float64, of `outputs [B, *facts.outputs]` and `targets [B, ...]`."""
        return torch.cat([kind(outputs, targets) for kind in self._kinds])

    def values(self, sums: np.ndarray) -> dict[str, float]:
        """Every metric by its name, from the `sums [n]` of all examples; recalls as `recall.CLASS`."""
        found: dict[str, float] = {}
        for name in self.names:
            metric, own = METRICS[name], sums[self._kinds[METRICS[name].sums]]
            if metric.value is None:
                found |= {
                    f"recall.{one}": float(recall) for one, recall in zip(self.class_names, recalls(own), strict=True)
                }
            else:
                found[name] = metric.value(own)
        return found

    def blank(self, kind: str) -> dict[str, None]:
        """The empty recall cells of a round that is not evaluated; other columns need none."""
        recalls = [f"recall.{one}" for one in self.class_names] if "class_recall" in self.names else []
        return {f"{kind}_{name}": None for name in recalls}

    def main_value(self, sums: torch.Tensor) -> float:
        """The main metric, from what a scorer sums up, `[3 + n]`."""
        return self.values(sums[3:].cpu().numpy())[self.main]
