"""Ends a run while the privacy budget still holds: before a round that could exceed some client's budget."""

from typing import Annotated

from fedexp.parts import Columns, ConfigError, Memory, Positive, Stop


class PrivacyBudget(Stop):
    """A largest epsilon, by the accountant of the privacy part, for any selection in the next round."""

    epsilon: Annotated[float, Positive] | None = None

    needs_privacy = True

    def check(self) -> None:
        if self.epsilon is None:
            raise ConfigError("stop.epsilon must be given where privacy.epsilon is not, such as stop.epsilon=3")

    def judge(self, row: Columns, memory: Memory) -> tuple[str | None, Memory]:
        following = row["privacy.epsilon_next"]
        assert following is not None
        assert self.epsilon is not None
        if following <= self.epsilon:
            return None, memory
        return f"one more round could cost epsilon {following:.4g}, more than the budget of {self.epsilon:g}", memory
