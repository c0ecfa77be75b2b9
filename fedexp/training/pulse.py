"""Signs of life: every worker counts on in a byte of its own, which the first process sees without asking."""

import mmap
import threading
import time

BEAT_S = 0.5
PATIENCE = 60  # looks without a new beat, which are at least a second apart


class Pulse:
    """The bytes of all workers; made before they are forked."""

    def __init__(self, size: int) -> None:
        self.beats = mmap.mmap(-1, size)
        self.seen = [-1] * size
        self.missed = [0] * size

    def begin(self, rank: int) -> None:
        """Beats from now on, in the worker; a process that is stopped or stuck in the kernel does not."""
        threading.Thread(target=self._beat, args=(rank,), daemon=True).start()

    def _beat(self, rank: int) -> None:
        while True:
            self.beats[rank] = (self.beats[rank] + 1) % 256
            time.sleep(BEAT_S)

    def silent(self) -> list[int]:
        """The workers that have missed `PATIENCE` looks with this one.

        Looks are counted and not seconds: where everybody was stopped and goes on, nobody was silent.
        """
        for rank, beat in enumerate(self.beats[:]):
            self.missed[rank] = self.missed[rank] + 1 if beat == self.seen[rank] else 0
            self.seen[rank] = beat
        return [rank for rank, missed in enumerate(self.missed) if rank and missed == PATIENCE]
