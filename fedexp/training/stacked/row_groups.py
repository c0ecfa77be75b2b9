"""How many rows of the stacked engine train at once: as many as fit in the memory.

Legend: R rows, B examples of a batch, D entries of a row.
"""

import logging
import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import nn

from fedexp.core.errors import RunError, first_line
from fedexp.training.client.batches import Batches
from fedexp.training.stacked.batch_schedule import BatchSchedule
from fedexp.training.stacked.graph_cache import GraphShape, round_down_size, round_up_size

log = logging.getLogger(__name__)

CONVOLUTION_ROWS = 8  # at most, of a group on a CPU; loop is faster there


def has_convolutions(network: nn.Module) -> bool:
    """Returns whether some layer of a network is a convolution."""
    return any(isinstance(layer, nn.modules.conv._ConvNd) for layer in network.modules())


class RowGroups:
    """Groups of rows that fit in `memory_mb`, and what is done where they do not.

    A row takes `copies` times its entries `D`, and `activations` floats for each example of its batch. On a GPU
    (`usual` is not None) rows and batches are rounded up, but not past their usual sizes. `convolves` says whether the
    network has convolutions.
    """

    def __init__(
        self,
        memory_mb: float,
        entries: int,
        copies: int,
        activations: int,
        usual: tuple[int, int] | None,
        convolves: bool,
    ) -> None:
        self.memory_mb, self.usual, self.convolves = memory_mb, usual, convolves
        self.entry_floats, self.activations = entries * copies, activations
        self.most_rows = math.inf  # at once, fewer where the memory was too small
        self.schedule = BatchSchedule.of([])  # of all rows of the last task

    def shape_mb(self, shape: GraphShape) -> float:
        """Returns the megabytes that captured steps of a shape take."""
        return 4e-6 * shape.rows * self._row_floats(shape.batch)

    def width(self, batches: Sequence[Batches], rows: np.ndarray) -> int:
        """Returns the width of the rows `[n]` of a group, given the batches of all rows of their task."""
        return int(self._schedule_of(batches).widths[rows].max(initial=1))

    def _schedule_of(self, batches: Sequence[Batches]) -> BatchSchedule:
        if self.schedule.batches is not batches:
            self.schedule = BatchSchedule.of(batches)
        return self.schedule

    def split(self, batches: Sequence[Batches], workers: int) -> list[np.ndarray]:
        """Splits the rows of a task into groups `[n]` of one width and similar step counts, that fit in the memory.

        There are as many as workers at least. On a CPU the kernels of a convolution, and so its last bits, depend on
        how many rows it has: there groups do not depend on the workers.
        """
        schedule = self._schedule_of(batches)
        steps, widths, groups = schedule.steps, schedule.widths, []
        for width in np.unique(widths)[::-1].tolist():
            rows = np.flatnonzero(widths == width)
            order, size = rows[np.argsort(-steps[rows], kind="stable")], self._group_size(len(rows), width, workers)
            groups += [order[cut : cut + size] for cut in range(0, len(order), size)]
        return [part for group in groups for part in _split_by_steps(group, steps)]

    def _group_size(self, rows: int, width: int, workers: int) -> int:
        """Returns how many of so many rows of a width train together."""
        if self.convolves and self.usual is None:
            workers = math.ceil(rows / CONVOLUTION_ROWS)
        share = max(1, math.ceil(rows / workers))
        fits = max(1, int(self.memory_mb * 1e6 / (4 * self._row_floats(width))))
        if self.usual is None:
            return min(share, fits)
        return share if fits >= round_up_size(share, self.usual[0]) else min(share, round_down_size(fits))

    def run(
        self, train: Callable[[np.ndarray], torch.Tensor], rows: np.ndarray, free: Callable[[], None]
    ) -> torch.Tensor:
        """Trains rows `[R]` together: `[R, ...]`. Where memory is too small, in two halves, and so from then on.

        `free` gives back what is kept for later rows.

        Raises:
            RunError: one row alone does not fit, or the results of all.
        """
        try:
            if len(rows) <= self.most_rows:
                return train(rows)
            parts = np.array_split(rows, math.ceil(len(rows) / self.most_rows))
            return torch.cat([self.run(train, part, free) for part in parts])
        except torch.OutOfMemoryError as error:
            half = math.ceil(len(rows) / 2)
            if len(rows) < 2 or half >= self.most_rows:
                raise RunError(
                    f"the GPU's memory is too small for {len(rows)} client(s) at once: {first_line(error)}; end what "
                    "else uses it and continue with fedexp resume, or begin a run with engine.memory_mb below "
                    f"{self.memory_mb / 2:.0f}, a smaller local.batch_size or engine=loop"
                ) from error
            self.most_rows = half
        log.warning(
            "the GPU's memory is too small for %d clients at once; %d are trained instead, as with a lower "
            "engine.memory_mb, now %.0f",
            *(len(rows), self.most_rows, self.memory_mb),
        )
        free()
        return self.run(train, rows, free)

    def _row_floats(self, batch: int) -> int:
        examples = batch if self.usual is None else round_up_size(batch, self.usual[1])
        return self.entry_floats + examples * self.activations


def _split_by_steps(rows: np.ndarray, steps: np.ndarray) -> list[np.ndarray]:
    """Splits rows (longest first) where the shortest would be padded to more than twice its steps."""
    if len(rows) and steps[rows[0]] > 2 * max(1, steps[rows[-1]]):
        short = int(np.argmax(steps[rows] * 2 < steps[rows[0]]))
        return [rows[:short], *_split_by_steps(rows[short:], steps)]
    return [rows] if len(rows) else []
