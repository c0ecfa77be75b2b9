"""When a run ends before its last round: write here what is enough, and say why in words.

As it stands, when the clients have sent so much. `row` is the round's line of metrics.csv without the test data;
`needs_validation` brings `validation_loss` and `validation_accuracy`, `needs_clock` asks for a fleet.
"""

from typing import Annotated

from fedexp.parts import Columns, Memory, Positive, Stop


class OwnStop(Stop):
    """So many `megabytes` in all, counted in the memory."""

    megabytes: Annotated[float, Positive] = 100.0

    def judge(self, row: Columns, memory: Memory) -> tuple[str | None, Memory]:
        sent = memory.get("sent", 0.0) + (row["mb_up"] or 0.0)
        reason = f"the clients have sent {sent:.3g} of {self.megabytes:g} MB"
        return reason if sent >= self.megabytes else None, {"sent": sent}
