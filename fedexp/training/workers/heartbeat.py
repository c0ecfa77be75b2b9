"""Heartbeats, by which workers that are stopped or stuck are noticed; one that died is noticed in `forked.py`.

Every worker increments its byte in shared memory, which the first process reads.
"""

import mmap
import threading
import time

BEAT_S = 0.5
PATIENCE = 20  # looks without a new beat; looks are at least a second apart


class Heartbeat:
    """The heartbeat bytes of all workers; created before they are forked."""

    def __init__(self, size: int) -> None:
        self.beats = mmap.mmap(-1, size)
        self.last_beats = [-1] * size
        self.missed = [0] * size

    def begin(self, rank: int) -> None:
        """Starts the heartbeat thread of a worker; it stops when the process is stopped or stuck in the kernel."""
        threading.Thread(target=self._beat, args=(rank,), daemon=True).start()

    def _beat(self, rank: int) -> None:
        while True:
            self.beats[rank] = (self.beats[rank] + 1) % 256
            time.sleep(BEAT_S)

    def silent_workers(self) -> list[int]:
        """Returns the workers that have now missed `PATIENCE` checks in a row.

        Looks are counted instead of seconds: if all processes were stopped together and continue, none counts as
        silent.
        """
        for rank, beat in enumerate(self.beats[:]):
            self.missed[rank] = self.missed[rank] + 1 if beat == self.last_beats[rank] else 0
            self.last_beats[rank] = beat
        return [rank for rank, missed in enumerate(self.missed) if rank and missed == PATIENCE]
