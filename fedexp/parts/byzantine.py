"""How many Byzantine rows a rule is asked to bear, and what happens in a round whose rows are too few for that.

`byzantine` is f, an upper bound on the rows of a round that may be anything. Where n rows do not allow it, `clamp`
lowers f to the largest that they do allow, `skip` leaves the global model as it is, `error` ends the run. Where n rows
do not even allow f = 0, `clamp` leaves the model as it is too. A round without rows violates nothing.
"""

import logging
from dataclasses import dataclass
from typing import Annotated, Literal

from fedexp.core.errors import RunError
from fedexp.core.part import Part, Range
from fedexp.core.values import Columns

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Tolerant(Part):
    """A rule with a bound on f; reports the f that it worked with (none: it stood aside) and whether that is less."""

    bound = "f < n"
    byzantine: Annotated[int, Range(0)] = 0
    on_violation: Literal["clamp", "skip", "error"] = "clamp"

    def most(self, rows: int) -> int:
        """The largest f that so many rows allow; negative where they do not even allow 0."""
        return rows - 1

    def tolerated(self, rows: int, number: int) -> tuple[int | None, Columns]:
        """The f to work with in this round (None: leave the model as it is), and what to report of it.

        Raises:
            RunError: the rows are too few and `on_violation` is `error`.
        """
        if rows == 0 or self.byzantine <= self.most(rows):
            used = self.byzantine if rows else None
            return used, {"byzantine": used, "violated": 0}
        trouble = (
            f"round {number}: {type(self).__name__} needs {self.bound}, but f = {self.byzantine} of n = {rows} updates"
        )
        if self.on_violation == "error":
            raise RunError(f"{trouble}; lower byzantine, ask more clients, or set on_violation=clamp")
        used = self.most(rows) if self.on_violation == "clamp" and self.most(rows) >= 0 else None
        log.warning("%s; %s", trouble, "the model stays as it is" if used is None else f"it goes on with f = {used}")
        return used, {"byzantine": used, "violated": 1}
