"""When clients are there: write here who is at a time, and until when that holds.

As it stands, clients are there in shifts, one after another: client k belongs to shift k modulo `shifts`.
"""

from typing import Annotated

import numpy as np

from fedexp.parts import Availability, Positive, Range, Timeline


class OwnAvailability(Availability):
    """Each of `shifts` is there for `shift_s` seconds."""

    changes = True

    shift_s: Annotated[float, Positive] = 60.0
    shifts: Annotated[int, Range(2)] = 3
    interrupts: bool = True

    def timeline(self, clients: int, seed: int) -> Timeline:
        def look(owner: np.ndarray, now_s: float) -> tuple[np.ndarray, np.ndarray]:
            number = now_s // self.shift_s  # of shifts since the run began
            shifts_to_wait = (owner - number) % self.shifts
            return shifts_to_wait == 0, self.shift_s * (number + np.maximum(shifts_to_wait, 1))

        return look
