"""Ends a run when the accuracy on the server's validation data reaches a target. Test data is not used."""

from dataclasses import dataclass
from typing import Annotated

from fedexp.core.part import Fraction
from fedexp.core.values import Columns, Memory
from fedexp.parts.stop.contract import Stop


@dataclass(frozen=True, kw_only=True)
class Target(Stop):
    """A validation accuracy to reach."""

    accuracy: Annotated[float, Fraction]

    needs_validation = True

    def judge(self, row: Columns, memory: Memory) -> tuple[str | None, Memory]:
        accuracy = row["validation_accuracy"]
        assert accuracy is not None
        done = accuracy >= self.accuracy
        return (f"validation accuracy {accuracy:.4f} reached {self.accuracy:g}" if done else None), memory
