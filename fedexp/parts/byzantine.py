"""How many Byzantine rows a rule must tolerate, and what happens in a round with too few rows for that.

`byzantine` is f, an upper bound on the rows of a round that may be arbitrary. If n rows are too few for it, `clamp`
lowers f to the largest that they allow, `skip` leaves the global model unchanged, and `error` ends the run. If they do
not even allow f = 0, `clamp` leaves the model unchanged, too. A round without rows violates nothing.
"""

import logging
from typing import Annotated, Literal

from fedexp.core.errors import RunError
from fedexp.core.part import Part, Range
from fedexp.core.values import Columns

log = logging.getLogger(__name__)


class Tolerant(Part):
    """A rule with a bound on f. Reports the f that it used (None: the model stayed) and whether it was lowered."""

    bound = "f < n"
    byzantine: Annotated[int, Range(0)] = 0
    on_violation: Literal["clamp", "skip", "error"] = "clamp"

    def max_byzantine(self, rows: int) -> int:
        """The largest f that this many rows allow; negative if they do not even allow 0."""
        return rows - 1

    @property
    def bound_key(self) -> str:
        """The key that says how many bad rows it expects."""
        return "byzantine"

    def guards_against(self, rows: int) -> int:
        """How many bad ones of so many rows it takes no harm from, as it is told."""
        return max(0, min(self.byzantine, self.max_byzantine(rows)))

    def effective_byzantine(self, rows: int, number: int) -> tuple[int | None, Columns]:
        """The f to use in this round (None: leave the model unchanged), and the columns to report.

        Raises:
            RunError: the rows are too few and `on_violation` is `error`.
        """
        if rows == 0 or self.byzantine <= self.max_byzantine(rows):
            used = self.byzantine if rows else None
            return used, {"byzantine": used, "violated": 0}
        reason = (
            f"round {number}: {type(self).__name__} needs {self.bound}, but f = {self.byzantine} of n = {rows} updates"
        )
        if self.on_violation == "error":
            raise RunError(f"{reason}; lower byzantine, ask more clients, or set on_violation=clamp")
        used = self.max_byzantine(rows) if self.on_violation == "clamp" and self.max_byzantine(rows) >= 0 else None
        log.warning("%s; %s", reason, "the model stays as it is" if used is None else f"it goes on with f = {used}")
        return used, {"byzantine": used, "violated": 1}


class HonestMajority(Tolerant):
    """A rule that needs more than half of the rows to be right."""

    bound = "2f < n"

    def max_byzantine(self, rows: int) -> int:
        return (rows - 1) // 2
