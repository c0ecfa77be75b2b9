"""The weighted mean of rows that come in groups, without holding them all. Legend: G rows of a group, D entries."""

import numpy as np
import torch

from fedexp.maths.rows import mix_rows


class GroupMean:
    """Adds up groups of rows in float64, in pairs of groups as in a tournament.

    The order of the sums follows from the order of the groups alone. It keeps a row for each power of two.
    """

    def __init__(self) -> None:
        self.weight = 0.0
        self.sums: list[tuple[int, torch.Tensor]] = []  # the number of groups in a sum, and the sum [D]

    def add(self, weight: np.ndarray, rows: torch.Tensor) -> None:
        """Adds a group of rows `[G, D]` with their weights `[G]`."""
        total = rows.new_empty((1, rows.shape[1]), dtype=torch.float64)
        groups, total = 1, mix_rows(torch.from_numpy(weight)[None].to(rows.device), rows, total)[0]
        while self.sums and self.sums[-1][0] == groups:
            total, groups = self.sums.pop()[1] + total, 2 * groups
        self.sums.append((groups, total))
        self.weight += float(weight.sum())

    def mean(self) -> torch.Tensor:
        """The mean of all rows, float64 `[D]`; of at least one, with a weight above 0."""
        total = self.sums[-1][1]
        for _, earlier in reversed(self.sums[:-1]):
            total = earlier + total
        return total / self.weight
