"""The mean of those n - f rows that lie closest together, whatever closeness is: the base of rules that try all sets.

There are n! / (f! (n - f)!) sets, so a round that would need too many distances is refused: before the run, if its
config says how many clients take part. Of sets that are equally close the first in the order of client numbers counts.
"""

from abc import abstractmethod
from collections.abc import Iterator
from itertools import combinations, islice
from math import comb
from typing import Literal

import torch

from fedexp.parts import Columns, ConfigError, HonestMajority, RunError, option, squared_distances
from fedexp.parts.aggregator.fedavg import weighted_mean
from fedexp.parts.aggregator.reporting import BoundedRule

MOST, CHUNK = 10**8, 2**20  # distances within sets: of all of them, and looked at together


class SubsetMean(HonestMajority, BoundedRule):
    """Averages the set of n - f rows with the smallest `spread`."""

    weighting: Literal["uniform"] = "uniform"

    @abstractmethod
    def spread(self, square: torch.Tensor) -> torch.Tensor:
        """How far apart the rows of each set are, `[S]`, given their squared distances `[S, n - f, n - f]`."""
        raise NotImplementedError

    def reduce_and_report(
        self, delta: torch.Tensor, share: torch.Tensor, byzantine: int
    ) -> tuple[torch.Tensor, Columns]:
        if objection := self._objection(len(delta), byzantine):
            raise RunError(objection)
        chosen = self.closest_rows(squared_distances(delta).cpu(), byzantine)
        weight = torch.zeros_like(share).index_fill(0, chosen.to(share.device), 1 / len(chosen))
        return weighted_mean(delta, weight), {}

    def refuse_rows(self, rows: int) -> None:
        super().refuse_rows(rows)
        most = self.max_byzantine(rows)
        byzantine = self.byzantine if self.byzantine <= most else most
        is_tried = rows > 0 and most >= 0 and (self.byzantine <= most or self.on_violation == "clamp")
        if is_tried and (objection := self._objection(rows, byzantine)):
            raise ConfigError(objection)

    def _objection(self, rows: int, byzantine: int) -> str:
        """Why so many rows are too many; empty if they are not."""
        if (count := comb(rows, byzantine)) * (rows - byzantine) ** 2 <= MOST:
            return ""
        number = f"{count:,}" if count < 10**15 else "more than 10^15"
        return (
            f"aggregator={option(self)} would try {number} sets of {rows - byzantine} of {rows} updates, which is too "
            "many; ask fewer clients a round, lower byzantine, or take aggregator=caf"
        )

    def closest_rows(self, square: torch.Tensor, byzantine: int) -> torch.Tensor:
        """The n - f rows of the set with the smallest spread, ascending, at squared distances `square [C, C]`."""
        best, smallest = torch.arange(len(square) - byzantine), float("inf")
        for sets in _chunks(len(square), byzantine):
            spread = self.spread(square[sets[:, :, None], sets[:, None, :]])
            first = int(spread.argmin())
            if spread[first] < smallest:
                best, smallest = sets[first], float(spread[first])
        return best


def _chunks(rows: int, byzantine: int) -> Iterator[torch.Tensor]:
    """All sets of n - f rows, some at a time, `[S, n - f]`."""
    sets = combinations(range(rows), rows - byzantine)
    while chunk := list(islice(sets, max(1, CHUNK // (rows - byzantine) ** 2))):
        yield torch.tensor(chunk)
