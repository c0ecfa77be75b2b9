"""Runs points on a Ray cluster, whose machines must share the sweep's folder, the data and the Python environment."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from fedexp.core.part import Range
from fedexp.process.exits import FAILURE
from fedexp.sweep.launchers.contract import Ends, Launcher, PointEnd, RunPoint, import_optional


class Ray(Launcher):
    """Gives each point `cpus` and `gpus` of the cluster at `address`, or of one that is started here for the sweep.

    Without `gpus` a point gets a whole one where the cluster has any.
    """

    address: str | None = None
    cpus: Annotated[float, Range(0)] = 1.0
    gpus: Annotated[float, Range(0)] | None = None
    jobs: Annotated[int, Range(1)] | None = None

    def refuse(self) -> None:
        import_optional("ray", "ray", "hydra/launcher=ray")

    def launch(self, todo: Iterator[Path], run_point: RunPoint) -> Ends:
        """A point whose process dies is taken up once more by Ray itself."""
        ray = self._start()
        gpus = min(1.0, ray.cluster_resources().get("GPU", 0.0)) if self.gpus is None else self.gpus
        remote = ray.remote(num_cpus=self.cpus, num_gpus=gpus, max_retries=1)(run_point_task)
        running: dict[Any, Path] = {}
        try:
            for folder in todo:
                running[remote.remote(run_point, folder)] = folder
                if len(running) >= self._max_in_flight(ray):
                    yield _collect_outcome(ray, running)
            while running:
                yield _collect_outcome(ray, running)
        finally:
            ray.shutdown()

    def _start(self) -> Any:
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # tasks without GPUs leave the variables alone
        ray = import_optional("ray", "ray", "hydra/launcher=ray")
        local_settings = {} if self.address else {"num_cpus": self.jobs, "include_dashboard": False}
        ray.init(
            address=self.address, log_to_driver=False, logging_level="error", ignore_reinit_error=True, **local_settings
        )
        return ray

    def _max_in_flight(self, ray: Any) -> int:
        """How many points are submitted at once: those that can run, and one that waits."""
        if self.jobs is not None:
            return self.jobs
        cores = ray.cluster_resources().get("CPU", 1)
        return max(1, int(cores / self.cpus)) + 1 if self.cpus else int(cores)


def run_point_task(run_point: RunPoint, folder: Path) -> PointEnd:
    """A named function for Ray, which names tasks by their function; a partial has no name."""
    return run_point(folder)


def _collect_outcome(ray: Any, running: dict[Any, Path]) -> PointEnd:
    task = next(islice(ray.wait(list(running), num_returns=1)[0], 1))
    folder = running.pop(task)
    try:
        return ray.get(task)
    except ray.exceptions.RayError as error:
        return PointEnd(folder, FAILURE, f"its task ended without a result: {type(error).__name__}")
