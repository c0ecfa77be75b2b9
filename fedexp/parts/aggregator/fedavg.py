"""FedAvg: the mean of the deltas (McMahan et al. 2017, algorithm 1).

Weighted by the examples of those who took part, w + sum_k n_k / (sum_j n_j) * delta_k, or `weighting=uniform`, which is
what the runs of the selection thesis did. Newer arXiv versions of the paper divide by the participants' examples, too;
the proceedings divide by n, all data, which is right only when everybody takes part. In a round of many clients
`simulation/collect.py` takes the same mean group by group, and `reduce` gets one row.
"""

import torch

from fedexp.parts import Aggregator, mix_rows


def weighted_mean(delta: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
    """sum_k share_k delta_k for `delta [C, D]`, accumulated in float64; `[D]`."""
    return mix_rows(share[None], delta)[0]


class FedAvg(Aggregator):
    """Weighted mean of the deltas."""

    averages = True
    needs_all_rows = False

    def reduce(self, delta: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
        return weighted_mean(delta, share)
