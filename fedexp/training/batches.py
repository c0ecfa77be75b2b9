"""The mini-batches of a client: every engine trains on exactly these."""

import math
from dataclasses import dataclass

import numpy as np

from fedexp.parts.local.contract import LocalRule
from fedexp.parts.privacy.contract import Sampling


@dataclass(frozen=True)
class Batches:
    """The mini-batches of one client in one round.

    Step s takes the examples at positions `order[bounds[s]:bounds[s + 1]]` of the client's shard; `epoch` is the number
    of steps of one epoch, `size` the batch size that was asked for, from which a batch may differ.
    """

    order: np.ndarray
    bounds: np.ndarray
    epoch: int
    size: int

    @property
    def steps(self) -> int:
        """How many steps the client takes."""
        return len(self.bounds) - 1

    @property
    def counts(self) -> np.ndarray:
        """Number of examples of each batch, `[steps]`."""
        return np.diff(self.bounds)


def draw_batches(rule: LocalRule, examples: int, rng: np.random.Generator, sampling: Sampling = "rule") -> Batches:
    """Cuts a client's examples into batches, epoch after epoch, reshuffled each time if the rule shuffles.

    An epoch has ceil(n / B) steps, or floor with `drop_last`; a client with fewer than B examples then takes none.
    Private training draws them in another way. `shuffled` always shuffles and drops the last batch. With `poisson`
    every example is in each batch with probability B / n, independently, so batches differ in size and may be empty.
    """
    size = examples if rule.batch_size == "full" else rule.batch_size
    private = sampling != "rule"
    whole = rule.drop_last or private
    per_epoch = 0 if examples == 0 else examples // size if whole else math.ceil(examples / size)
    if per_epoch == 0:
        return Batches(np.zeros(0, np.int64), np.zeros(1, np.int64), 0, size)
    steps = rule.steps_in(per_epoch)
    if sampling == "poisson":
        return _flipped(size / examples, steps, examples, rng, per_epoch, size)
    epochs = math.ceil(steps / per_epoch)
    visited = min(per_epoch * size, examples)
    mixed = rule.shuffle or private
    orders = [rng.permutation(examples) if mixed else np.arange(examples) for _ in range(epochs)]
    ends = np.minimum(np.arange(1, per_epoch + 1) * size, visited)
    bounds = np.concatenate([[0], (np.arange(epochs)[:, None] * visited + ends).ravel()[:steps]])
    order = np.concatenate([order[:visited] for order in orders])
    return Batches(order[: bounds[-1]], bounds, per_epoch, size)


def _flipped(rate: float, steps: int, examples: int, rng: np.random.Generator, epoch: int, size: int) -> Batches:
    """Poisson sampling: each example is in each batch independently; the order within a batch does not matter."""
    drawn = [np.flatnonzero(rng.random(examples) < rate) for _ in range(steps)]
    bounds = np.concatenate([[0], np.cumsum([len(batch) for batch in drawn])])
    return Batches(np.concatenate(drawn), bounds, epoch, size)


def running_losses(losses: np.ndarray, batches: Batches) -> tuple[float, float]:
    """Example-weighted mean of the batches' `losses [steps]` in the first and the last epoch; NaN without examples."""
    if batches.steps == 0:
        return math.nan, math.nan
    counts = batches.counts
    last = (batches.steps - 1) // batches.epoch * batches.epoch
    first = slice(0, batches.epoch)
    return _average(losses[first], counts[first]), _average(losses[last:], counts[last:])


def _average(losses: np.ndarray, counts: np.ndarray) -> float:
    total = int(counts.sum())
    return float((losses.astype(float) * counts).sum() / total) if total else math.nan
