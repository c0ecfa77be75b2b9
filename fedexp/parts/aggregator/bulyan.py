"""Bulyan over Krum (El Mhamdi, Guerraoui & Rouault 2018, arXiv 1802.07927).

First theta = n - 2f rows are chosen one after another, each by Krum among those that are left. Then every column
becomes the mean of the theta - 2f chosen values that lie closest to their median. Needs 4f + 3 <= n.
Krum among r rows takes r - f - 2 neighbours. For the last few rows this number would fall below one; at least one
neighbour is taken, as otherwise all scores would be 0. Ties: the smallest client number, then the smaller value.
"""

from typing import ClassVar, Literal

import torch

from fedexp.parts import Columns, blocks, sorted_columns, squared_distances
from fedexp.parts.aggregator.reporting import BoundedRule


def select_by_krum(square: torch.Tensor, byzantine: int, count: int) -> torch.Tensor:
    """The `count` rows that Krum selects one by one, ascending, given squared distances `square [C, C]`.

    Each row's neighbours are sorted once; rows chosen before are skipped.
    """
    square = square.cpu()
    nearest, neighbour = square.sort(dim=1)
    remaining = torch.ones(len(square), dtype=torch.bool)
    not_self = neighbour != torch.arange(len(square))[:, None]
    for row_count in range(len(square), len(square) - count, -1):
        eligible = remaining[neighbour] & not_self
        counted = eligible & (eligible.cumsum(dim=1) <= max(row_count - byzantine - 2, 1))
        score = torch.where(counted, nearest, 0.0).sum(dim=1)
        remaining[score.masked_fill(~remaining, torch.inf).argmin()] = False
    return torch.nonzero(~remaining)[:, 0]


def mean_around_median(values: torch.Tensor, count: int) -> torch.Tensor:
    """The mean `[B]` of the `count` values closest to the median in each row of the sorted `values [B, theta]`.

    These values are neighbours: the farther end is dropped again and again until they are left.
    """
    values, size = values.double(), values.shape[1]
    middle = values[:, (size - 1) // 2 : size // 2 + 1].mean(dim=1, keepdim=True)
    low = torch.zeros((len(values), 1), dtype=torch.int64, device=values.device)
    for width in range(size, count, -1):
        high = low + width - 1
        low = low + (middle - values.gather(1, low) > values.gather(1, high) - middle)
    position = torch.arange(size, device=values.device) - low
    return torch.where((position >= 0) & (position < count), values, 0.0).sum(dim=1) / count


def bulyan(delta: torch.Tensor, byzantine: int) -> torch.Tensor:
    """Bulyan's row `[D]` of `delta [C, D]`.

    Raises:
        ValueError: 4f + 3 <= n does not hold.
    """
    clients = len(delta)
    if 4 * byzantine + 3 > clients:
        raise ValueError(f"Bulyan needs 4f + 3 <= n, got f = {byzantine} and n = {clients}")
    chosen = select_by_krum(squared_distances(delta), byzantine, clients - 2 * byzantine).to(delta.device)
    result = delta.new_empty(delta.shape[1])
    for columns, block in blocks(delta):
        result[columns] = mean_around_median(sorted_columns(block[chosen]), clients - 4 * byzantine).to(delta.dtype)
    return result


class Bulyan(BoundedRule):
    """Reports how many rows Krum chose."""

    bound = "4f + 3 <= n"
    idle_columns: ClassVar[Columns] = {"kept": 0}
    weighting: Literal["uniform"] = "uniform"

    def max_byzantine(self, rows: int) -> int:
        return (rows - 3) // 4

    def reduce_and_report(
        self, delta: torch.Tensor, share: torch.Tensor, byzantine: int
    ) -> tuple[torch.Tensor, Columns]:
        return bulyan(delta, byzantine), {"kept": len(delta) - 2 * byzantine}
