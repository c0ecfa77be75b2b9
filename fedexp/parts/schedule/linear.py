"""A rate that falls along a line: 1 - (1 - end) (t - 1) / T in round t of T.

The first round has the whole rate, and the one after the last would have `end` of it. T is what the warm-up leaves of
`rounds`.
"""

from typing import Annotated

from fedexp.parts import Fraction, Range, Schedule


class Linear(Schedule):
    """A straight line over `rounds`; `end` of the rate is left after them."""

    rounds: Annotated[int, Range(1)]
    end: Annotated[float, Fraction] = 0.0

    def decay_factor(self, round: int) -> float:
        rounds = max(1, self.rounds - self.warmup)
        return 1 - (1 - self.end) * min(round - 1, rounds) / rounds
