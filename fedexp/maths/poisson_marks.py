"""Poisson processes of many clients that can be looked at anywhere in time, at the same cost.

Time is cut into cells in which one mark is expected. A process without memory may begin anew in each cell, so the marks
of a cell follow from draws of (client, cell) alone: exponential gaps from its beginning, as long as they end in it.
Where the rate changes with time, a mark counts with the probability rate / highest rate (thinning; Lewis & Shedler
1979). Legend: N clients, n of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from fedexp.core.random_streams import indexed_draws

BLOCK = 4  # marks of a cell that are drawn at a time: one in fifty cells has more


@dataclass(frozen=True)
class PoissonMarks:
    """Marks at `rate [N]` a second, 0 for none; of those of `owner` at some times the share `thinning` counts."""

    seed: int
    name: str
    rate: np.ndarray
    thinning: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None

    def first_after(self, owner: np.ndarray, time_s: float) -> np.ndarray:
        """When the first mark of each client of `owner [n]` after a time is, `[n]`; infinity if there is none."""
        return self._search(owner, time_s, 1)

    def last_until(self, owner: np.ndarray, time_s: float) -> np.ndarray:
        """When the last mark of each client of `owner [n]` up to a time was, `[n]`; -infinity if there was none."""
        return self._search(owner, time_s, -1)

    def _search(self, owner: np.ndarray, time_s: float, direction: int) -> np.ndarray:
        """The mark `[n]` nearest to a time: of those after it, or of those up to it, cell by cell."""
        nearest, none = (np.minimum, np.inf) if direction > 0 else (np.maximum, -np.inf)
        marks, rows = np.full(len(owner), none), np.flatnonzero(self.rate[owner] > 0)
        cell = np.floor(time_s * self.rate[owner]).astype(np.int64)
        while len(rows):
            for positions, times in self._marks(owner[rows], cell[rows]):
                matches = times > time_s if direction > 0 else times <= time_s
                marks[rows[positions]] = nearest(
                    marks[rows[positions]], nearest.reduce(np.where(matches, times, none), 1)
                )
            rows = rows[np.isinf(marks[rows])]
            cell[rows] += direction
        return marks

    def _marks(self, owner: np.ndarray, cell: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The marks of each client in its cell, some at a time: rows of `owner [n]`, times `[rows, BLOCK]` or NaN."""
        rows, offset, number = np.arange(len(owner)), np.zeros(len(owner)), np.arange(BLOCK)
        while len(rows):
            index = (owner[rows, None], cell[rows, None], number)
            gaps = -np.log1p(-indexed_draws(self.seed, self.name, index=index))
            offsets = offset[:, None] + np.cumsum(gaps, axis=1)
            times = np.where(offsets < 1, (cell[rows, None] + offsets) / self.rate[owner[rows], None], np.nan)
            if self.thinning is not None:
                draws = indexed_draws(self.seed, self.name, "thinning", index=index)
                times[draws >= self.thinning(owner[rows, None], times)] = np.nan
            yield rows, times
            is_open = offsets[:, -1] < 1
            rows, offset, number = rows[is_open], offsets[is_open, -1], number + BLOCK
