"""The batch schedule: the batches of the rows that train together, laid out in arrays.

Legend: R rows, S steps of the longest row, B examples of the largest batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedexp.training.client.batches import Batches, running_losses

NARROW = 64  # examples; narrower batches are padded to as many, or to the largest: more groups would cost more


@dataclass(frozen=True)
class BatchSchedule:
    """What rows do in each step: `counts [R, S]` examples, `steps [R]` steps in all, `epoch [R]` steps an epoch.

    Batches are padded to `width` examples.
    """

    batches: Sequence[Batches]
    steps: np.ndarray
    epoch: np.ndarray
    counts: np.ndarray
    width: int

    @staticmethod
    def of(batches: Sequence[Batches], width: int | None = None) -> "BatchSchedule":
        """Returns the schedule of rows that train on these batches `[R]`; without a width that of the largest batch."""
        steps = np.array([client_batches.steps for client_batches in batches], np.int64)
        epoch = np.array([client_batches.epoch for client_batches in batches], np.int64)
        counts = np.zeros((len(batches), int(steps.max(initial=0))), np.int64)
        if len(batches):
            between = np.diff(np.concatenate([client_batches.bounds for client_batches in batches]))
            counts[_leading_steps(steps, counts.shape[1])] = np.delete(between, np.cumsum(steps + 1)[:-1] - 1)
        return BatchSchedule(batches, steps, epoch, counts, int(counts.max(initial=1)) if width is None else width)

    @cached_property
    def widths(self) -> np.ndarray:
        """The number of examples to which the batches of each row are padded where all rows make a task, int `[R]`.

        It is that of the largest batch of all, or a half, a quarter and so on of it where these are large. Rows train
        beside others of their width alone: how far a row is padded may move its last bits, and must not depend on how
        many workers there are.
        """
        largest = self.counts.max(axis=1, initial=min(NARROW, self.counts.max(initial=1)))
        halvings = np.floor(np.log2(largest.max(initial=1) / largest))
        return np.ceil(largest.max(initial=1) / 2**halvings).astype(np.int64)

    @property
    def active_steps(self) -> np.ndarray:
        """Which rows take which steps, bool `[S, R]`."""
        return np.ascontiguousarray(_leading_steps(self.steps, self.counts.shape[1]).T)

    def examples(self, shards: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Returns the example numbers of every step and a mask, `[S, R, B]`, given the rows' `shards [R]`.

        Missing examples have mask 0. They are the first of the batch again, which can do a row no harm that it does not
        do anyhow; in an empty batch they are example 0.
        """
        mask = np.arange(self.width) < self.counts[:, :, None]
        index = np.zeros(mask.shape, np.int64)
        sizes = np.array([len(shard) for shard in shards])
        orders = [client_batches.order for client_batches in self.batches]
        first = np.repeat(np.cumsum(sizes) - sizes, [len(order) for order in orders])
        index[mask] = np.concatenate([*shards, np.zeros(0, np.int64)])[np.concatenate(orders) + first]
        partial = (self.counts > 0) & (self.counts < self.width)
        index[partial] = np.where(mask[partial], index[partial], index[partial][:, :1])
        return np.ascontiguousarray(index.transpose(1, 0, 2)), np.ascontiguousarray(mask.transpose(1, 0, 2))

    def step_flags(self, flags: Callable[[int, int], np.ndarray]) -> np.ndarray:
        """Returns which steps of which rows are flagged, float32 `[S, R, 1]`.

        `flags` says it of a row's steps, bool [steps], given how many there are in all and in an epoch.
        """
        mask = np.zeros((*self.counts.shape[::-1], 1), np.float32)
        for steps, epoch, rows in self._rows_by_length():
            mask[:steps, rows, 0] = flags(steps, epoch)[:, None]
        return mask

    def running_losses(self, losses: np.ndarray) -> np.ndarray:
        """Example-weighted mean of the batches' `losses [S, R]` in the first and the last epoch, float64 `[R, 2]`.

        NaN for a row without steps.
        """
        averages = np.empty((len(self.steps), 2))
        for steps, epoch, rows in self._rows_by_length():
            averages[rows] = running_losses(losses.T[rows, :steps], self.counts[rows, :steps], epoch)
        return averages

    def weights(self) -> np.ndarray:
        """Returns the weights that `running_losses` gives to losses, float64 `[2, S, R]`, S at least 1."""
        weights = np.zeros((2, max(1, self.counts.shape[1]), len(self.counts)))
        for steps, epoch, rows in self._rows_by_length():
            last = (steps - 1) // epoch * epoch if epoch else 0
            for part, weight in zip((slice(0, epoch), slice(last, steps)), weights, strict=True):
                counts = self.counts[rows, part].T
                weight[part, rows] = counts / np.maximum(counts.sum(axis=0), 1)
        weights[:, :1, :] = np.where(weights.sum(axis=1, keepdims=True) > 0, weights[:, :1, :], np.nan)
        return weights

    def _rows_by_length(self) -> list[tuple[int, int, np.ndarray]]:
        """Groups rows by steps and steps an epoch: `(steps, epoch, rows [n])` for each group."""
        lengths = self.steps * (int(self.epoch.max(initial=0)) + 1) + self.epoch
        firsts, kind = np.unique(lengths, return_index=True, return_inverse=True)[1:]
        rows = np.split(np.argsort(kind, kind="stable"), np.cumsum(np.bincount(kind))[:-1])
        return [
            (int(self.steps[row]), int(self.epoch[row]), members) for row, members in zip(firsts, rows, strict=True)
        ]


def _leading_steps(steps: np.ndarray, longest: int) -> np.ndarray:
    """Returns which of `longest` steps are among the first `steps [R]`, bool `[R, longest]`."""
    return np.arange(longest) < steps[:, None]
