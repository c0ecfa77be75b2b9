"""A rate that falls along half a cosine (Loshchilov & Hutter 2017, arXiv 1608.03983, eq. 5), without restarts.

In round t of T it is end + (1 - end) (1 + cos(pi (t - 1) / T)) / 2, as PyTorch's `CosineAnnealingLR` with T_max = T.
The first round has the whole rate, and the one after the last would have `end` of it. T is what the warm-up leaves of
`rounds`.
"""

import math
from typing import Annotated

from fedexp.parts import Fraction, Range, Schedule


class Cosine(Schedule):
    """Half a cosine over `rounds`; `end` of the rate is left after them."""

    rounds: Annotated[int, Range(1)]
    end: Annotated[float, Fraction] = 0.0

    def decay_factor(self, round: int) -> float:
        rounds = max(1, self.rounds - self.warmup)
        return self.end + (1 - self.end) * (1 + math.cos(math.pi * min(round - 1, rounds) / rounds)) / 2
