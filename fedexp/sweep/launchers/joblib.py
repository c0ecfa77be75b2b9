"""Runs points on the cores of this machine, in joblib's processes."""

import os
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import torch

from fedexp.core.part import Range
from fedexp.core.signals import die_with
from fedexp.sweep.launchers.contract import Ends, Launcher, PointEnd, RunPoint, after_death


class Joblib(Launcher):
    """Runs `jobs` points at once, each in its own process; where there are several GPUs, spread over them."""

    jobs: Annotated[int, Range(1)]

    def launch(self, todo: Iterator[Path], run_point: RunPoint) -> Ends:
        """Joblib ends all its processes when one of them dies: their points are taken up again, twice at most."""
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        deaths: Counter[Path] = Counter()
        running: list[Path] = []
        again: list[Path] = []
        while True:
            try:
                for outcome in self._parallel(chain(again, todo), run_point, running):
                    running.remove(outcome.folder)
                    yield outcome
                return
            except TerminatedWorkerError:
                again, killed = after_death(running, deaths)
                running.clear()
                yield from killed

    def _parallel(self, folders: Iterator[Path], run_point: RunPoint, running: list[Path]) -> Any:
        from joblib import delayed

        chosen = os.environ.get("LOCAL_RANK")  # by the user, for all points
        gpus = [str(gpu) for gpu in range(max(1, torch.cuda.device_count()))] if chosen is None else [chosen]
        gpu_of = dict[Path, str]()

        def tasks() -> Iterator[Any]:
            for folder in folders:
                in_use = Counter(gpu_of[point] for point in running)
                gpu_of[folder] = min(gpus, key=lambda gpu: in_use[gpu])
                running.append(folder)
                yield delayed(run_on_gpu)(run_point, folder, gpu_of[folder])

        return parallel(self.jobs, pre_dispatch="n_jobs", return_as="generator_unordered")(tasks())


def run_on_gpu(run_point: RunPoint, folder: Path, gpu: str) -> PointEnd:
    """Runs a point in this process of joblib's, on the GPU of this number if it runs on one."""
    before = os.environ.get("LOCAL_RANK")
    os.environ["LOCAL_RANK"] = gpu
    try:
        return run_point(folder)
    finally:  # with one job this is the process of the sweep itself
        del os.environ["LOCAL_RANK"]
        if before is not None:
            os.environ["LOCAL_RANK"] = before


def parallel(jobs: int, **options: Any) -> Any:
    """Joblib's `Parallel`, with processes that end when this one is killed."""
    from joblib import Parallel

    return Parallel(jobs, backend="loky", initializer=die_with, initargs=(os.getpid(),), **options)
