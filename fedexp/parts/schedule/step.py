"""A rate that drops: times `gamma` after every `every` rounds, or after those that are listed.

As `StepLR` and `MultiStepLR` of PyTorch, with rounds for epochs: the round after the drop is the first with the new
rate.
"""

from typing import Annotated

from fedexp.parts import ConfigError, Range, Schedule

Rounds = Annotated[int, Range(1)]


class Step(Schedule):
    """Decay in steps."""

    gamma: Annotated[float, Range(0, 1, low_open=True)] = 0.1
    every: Rounds | tuple[Rounds, ...] = 50

    def check(self) -> None:
        if self.every == ():
            raise ConfigError("Step.every must name a round, got []; use schedule=constant for a rate that never drops")

    def decay_factor(self, round: int) -> float:
        if isinstance(self.every, int):
            return self.gamma ** ((round - 1) // self.every)
        return self.gamma ** sum(round > last for last in self.every)
