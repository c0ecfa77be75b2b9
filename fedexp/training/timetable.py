"""The batch schedule: the batches of the rows that train together, laid out in arrays.

Legend: R rows, S steps of the longest row, B examples of the largest batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedexp.parts.local.contract import LocalRule
from fedexp.training.batches import Batches, running_losses


@dataclass(frozen=True)
class Timetable:
    """What rows do in each step: `counts [R, S]` examples, `steps [R]` steps in all, `epoch [R]` steps an epoch."""

    batches: Sequence[Batches]
    steps: np.ndarray
    epoch: np.ndarray
    counts: np.ndarray

    @staticmethod
    def of(batches: Sequence[Batches]) -> "Timetable":
        """Returns the schedule of rows that train on these batches `[R]`."""
        steps = np.array([each.steps for each in batches], np.int64)
        epoch = np.array([each.epoch for each in batches], np.int64)
        counts = np.zeros((len(batches), int(steps.max(initial=0))), np.int64)
        if len(batches):
            between = np.diff(np.concatenate([each.bounds for each in batches]))
            counts[_before(steps, counts.shape[1])] = np.delete(between, np.cumsum(steps + 1)[:-1] - 1)
        return Timetable(batches, steps, epoch, counts)

    @property
    def width(self) -> int:
        """The number of examples in the largest batch, at least 1."""
        return int(self.counts.max(initial=1))

    @property
    def taking(self) -> np.ndarray:
        """Which rows take which steps, bool `[S, R]`."""
        return np.ascontiguousarray(_before(self.steps, self.counts.shape[1]).T)

    def examples(self, shards: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Returns the example numbers of every step and a mask, `[S, R, B]`, given the rows' `shards [R]`.

        Missing examples have mask 0. They are the first of the batch again, which can do a row no harm that it does not
        do anyhow; in an empty batch they are example 0.
        """
        mask = np.arange(self.width) < self.counts[:, :, None]
        index = np.zeros(mask.shape, np.int64)
        sizes = np.array([len(shard) for shard in shards])
        orders = [each.order for each in self.batches]
        first = np.repeat(np.cumsum(sizes) - sizes, [len(order) for order in orders])
        index[mask] = np.concatenate([*shards, np.zeros(0, np.int64)])[np.concatenate(orders) + first]
        partial = (self.counts > 0) & (self.counts < self.width)
        index[partial] = np.where(mask[partial], index[partial], index[partial][:, :1])
        return np.ascontiguousarray(index.transpose(1, 0, 2)), np.ascontiguousarray(mask.transpose(1, 0, 2))

    def pulled(self, rule: LocalRule) -> np.ndarray:
        """Returns after which steps the rule pulls which rows, float32 `[S, R, 1]`."""
        due = np.zeros((*self.counts.shape[::-1], 1), np.float32)
        for steps, epoch, rows in self._alike():
            due[:steps, rows, 0] = rule.pulls(steps, epoch)[:, None]
        return due

    def running_losses(self, losses: np.ndarray) -> np.ndarray:
        """Example-weighted mean of the batches' `losses [S, R]` in the first and the last epoch, float64 `[R, 2]`.

        NaN for a row without steps.
        """
        found = np.empty((len(self.steps), 2))
        for steps, epoch, rows in self._alike():
            found[rows] = running_losses(losses.T[rows, :steps], self.counts[rows, :steps], epoch)
        return found

    def weights(self) -> np.ndarray:
        """Returns the weights that `running_losses` gives to losses, float64 `[2, S, R]`, S at least 1."""
        found = np.zeros((2, max(1, self.counts.shape[1]), len(self.counts)))
        for steps, epoch, rows in self._alike():
            last = (steps - 1) // epoch * epoch if epoch else 0
            for part, weight in zip((slice(0, epoch), slice(last, steps)), found, strict=True):
                counts = self.counts[rows, part].T
                weight[part, rows] = counts / np.maximum(counts.sum(axis=0), 1)
        found[:, :1, :] = np.where(found.sum(axis=1, keepdims=True) > 0, found[:, :1, :], np.nan)
        return found

    def _alike(self) -> list[tuple[int, int, np.ndarray]]:
        """Groups rows by steps and steps an epoch: `(steps, epoch, rows [n])` for each group."""
        both = self.steps * (int(self.epoch.max(initial=0)) + 1) + self.epoch
        firsts, kind = np.unique(both, return_index=True, return_inverse=True)[1:]
        rows = np.split(np.argsort(kind, kind="stable"), np.cumsum(np.bincount(kind))[:-1])
        return [(int(self.steps[row]), int(self.epoch[row]), alike) for row, alike in zip(firsts, rows, strict=True)]


def _before(steps: np.ndarray, longest: int) -> np.ndarray:
    """Returns which of `longest` steps are among the first `steps [R]`, bool `[R, longest]`."""
    return np.arange(longest) < steps[:, None]
