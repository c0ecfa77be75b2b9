"""Multi-Krum: the mean of the m updates with the smallest Krum scores (Blanchard et al. 2017, arXiv 1703.02757).

All rows are scored once. The mean is the plain one, as in the paper, because a Byzantine client can lie about its
number of examples; `weighting=num_samples` trusts it. `m` is n - f if not given, and no more than that where it is.
"""

from typing import Annotated, ClassVar, Literal

import torch

from fedexp.parts import Columns, Range, squared_distances
from fedexp.parts.aggregator.fedavg import weighted_mean
from fedexp.parts.aggregator.krum import krum_scores
from fedexp.parts.aggregator.reporting import BoundedRule


def multi_krum(delta: torch.Tensor, share: torch.Tensor, byzantine: int, m: int) -> torch.Tensor:
    """The mean `[D]`, weighted by `share [C]`, of the m rows of `delta [C, D]` with the smallest scores."""
    scores = krum_scores(squared_distances(delta), byzantine)
    weight = torch.zeros_like(share).index_fill(0, scores.argsort(stable=True)[:m], 1.0) * share
    return weighted_mean(delta, weight / weight.sum())


class MultiKrum(BoundedRule):
    """Averages the rows with the smallest Krum scores."""

    bound = "2f + 2 < n"
    idle_columns: ClassVar[Columns] = {"kept": 0}
    weighting: Literal["num_samples", "uniform"] = "uniform"
    m: Annotated[int, Range(1)] | None = None

    def max_byzantine(self, rows: int) -> int:
        return (rows - 3) // 2

    def reduce_and_report(
        self, delta: torch.Tensor, share: torch.Tensor, byzantine: int
    ) -> tuple[torch.Tensor, Columns]:
        trusted = len(delta) - byzantine
        count = min(self.m or trusted, trusted)
        return multi_krum(delta, share, byzantine, count), {"kept": count}
