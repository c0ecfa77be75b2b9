"""A rate that falls along a line: 1 - (1 - end) (t - 1) / T in round t of T.

The first round has the whole rate, and the one after the last would have `end` of it. T is what the warm-up leaves of
`rounds`.
"""

from typing import Annotated

from fedexp.parts import Fraction, Range, Schedule


def linear(round: int, rounds: int, end: float) -> float:
    """The factor of round t of T, from 1; `end` of the rate is left after them."""
    return 1 - (1 - end) * min(round - 1, rounds) / rounds


class Linear(Schedule):
    """A straight line over `rounds`."""

    rounds: Annotated[int, Range(1)]
    end: Annotated[float, Fraction] = 0.0

    def decay_factor(self, round: int) -> float:
        return linear(round, max(1, self.rounds - self.warmup), self.end)
