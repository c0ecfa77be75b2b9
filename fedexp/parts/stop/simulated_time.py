"""Ends a run when the simulated clock reaches its budget; the last round may overshoot."""

from typing import Annotated

from fedexp.parts import Columns, Memory, Positive, Stop


class SimulatedTime(Stop):
    """A budget of simulated minutes."""

    minutes: Annotated[float, Positive]

    needs_clock = True

    def judge(self, row: Columns, memory: Memory) -> tuple[str | None, Memory]:
        seconds = row["sim_s"]
        assert seconds is not None
        done = seconds >= 60 * self.minutes
        return (f"the budget of {self.minutes:g} simulated minutes is spent" if done else None), memory
