"""Several points at once in one process, in step with each other: their clients train as one stack."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fedexp.core.part import Range
from fedexp.sweep.launchers.contract import Ends, Launcher, Live, PointEnd


@dataclass(frozen=True, kw_only=True)
class Together(Launcher):
    """At most `runs` points are in memory at once."""

    runs: Annotated[int, Range(1)] = 16

    def launch(self, todo: Iterator[Path], live: Live) -> Ends:
        """Every point is a strand that waits where it trains its clients; once all wait, all are trained."""
        from fedexp.sweep.companions import Companion, Shared
        from fedexp.sweep.strands import Strand

        shared, strands = Shared(), []
        try:
            while True:
                while len(strands) < self.runs and (folder := next(todo, None)) is not None:
                    strands.append(Strand(lambda own, folder=folder: live(folder, company=Companion(shared, own))))
                    strands[-1].resume()
                    yield from _ended(strands)
                if not strands:
                    return
                answers = shared.meeting.train([strand.asked for strand in strands])
                for strand, answer in zip(tuple(strands), answers, strict=True):
                    strand.resume(answer)
                    yield from _ended(strands)
        finally:
            for strand in strands:
                strand.end(KeyboardInterrupt())


def _ended(strands: list) -> list[PointEnd]:
    """How the points ended that are over; takes them from the list."""
    over = [strand for strand in strands if strand.over]
    strands[:] = [strand for strand in strands if not strand.over]
    for strand in over:
        if strand.error is not None:
            raise strand.error
    return [strand.result for strand in over]
