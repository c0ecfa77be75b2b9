"""A rate that is multiplied by `gamma` after every round: gamma^(t - 1) in round t."""

from typing import Annotated

from fedexp.parts import Range, Schedule


class Exponential(Schedule):
    """Exponential decay."""

    gamma: Annotated[float, Range(0, 1, low_open=True)] = 0.99

    def decay_factor(self, round: int) -> float:
        return self.gamma ** (round - 1)
