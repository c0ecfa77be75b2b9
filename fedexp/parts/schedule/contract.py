"""The contract of schedules: what a learning rate is multiplied by in every round.

Two groups have these options: `schedule` moves `local.lr`, the clients' rate, and `server_schedule` moves
`server_optimizer.lr`. Within a round the rate stays. In the first `warmup` rounds the factor grows in equal steps, t /
(warmup + 1) in round t (Goyal et al. 2017, arXiv 1706.02677, warm up by steps); what an option does begins after them.
"""

from typing import Annotated, Any

from fedexp.core.part import Part, Range
from fedexp.core.replace_unchecked import P, replace_unchecked


def with_rate(part: P, lr: Any) -> P:
    """A copy of a part whose `lr` is this number or 0-dim tensor; the part itself if it is None."""
    return part if lr is None else replace_unchecked(part, lr=lr)


class Schedule(Part):
    """The factor of the learning rate in every round. The base is constant after the warm-up."""

    warmup: Annotated[int, Range(0)] = 0

    @property
    def moves(self) -> bool:
        """Whether the rate differs between rounds."""
        return self.warmup > 0 or type(self).decay_factor is not Schedule.decay_factor

    def factor(self, round: int) -> float:
        """The factor of the rate in a round; training before the first round has the first round's rate."""
        round = max(1, round)
        if round <= self.warmup:
            return round / (self.warmup + 1)
        return self.decay_factor(round - self.warmup)

    def decay_factor(self, round: int) -> float:
        """The factor of the round with this number, from 1, after the warm-up."""
        return 1.0

    def rate(self, part: Any, round: int) -> float | None:
        """The learning rate of a part in a round; None where it is the part's `lr` in all rounds."""
        return part.lr * self.factor(round) if self.moves else None
