"""Several points at once in one process, in step with each other: their clients train as one stack."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from fedexp.core.errors import ConfigError
from fedexp.core.part import Range
from fedexp.sweep.launchers.contract import Ends, Launcher, Live, PointEnd


@dataclass(frozen=True, kw_only=True)
class Together(Launcher):
    """At most `runs` points are in memory of each of `jobs` processes at once."""

    in_step = True
    chooses = True

    runs: Annotated[int, Range(1)] = 16
    jobs: Annotated[int, Range(1)] = 1

    def refuse(self) -> None:
        if self.jobs == 1:
            return
        import torch

        who = f"hydra.launcher.jobs must be 1 with hydra/launcher=together, got {self.jobs}:"
        if not hasattr(os, "fork"):
            raise ConfigError(f"{who} processes cannot fork here; use hydra/launcher=joblib")
        if torch.cuda.is_available():
            raise ConfigError(
                f"{who} forks cannot use the GPU that is here; raise hydra.launcher.runs instead, or hide the GPU: "
                "CUDA_VISIBLE_DEVICES= fedexp run ..."
            )

    def refuse_point(self, config: Mapping[str, Any]) -> None:
        from fedexp.sweep.companions import refuse_workers

        refuse_workers(config["engine"]["workers"])

    def launch(self, todo: Iterator[Path], live: Live) -> Ends:
        if self.jobs == 1:
            yield from in_step(todo, live=live, runs=self.runs)
            return
        from fedexp.sweep.forks import Forks

        yield from Forks(self.jobs, todo, partial(in_step, live=live, runs=self.runs)).ends()


def in_step(todo: Iterator[Path], *, live: Live, runs: int) -> Ends:
    """Every point is a strand that waits where it trains its clients; once all wait, all are trained."""
    from fedexp.sweep.companions import Companion, Shared
    from fedexp.sweep.strands import Strand

    shared, strands = Shared(), []
    try:
        while True:
            while len(strands) < runs and (folder := next(todo, None)) is not None:
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
