"""Runs points on a Ray cluster, whose machines must share the sweep's folder, the data and the Python environment."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from fedexp.core.exits import FAILED
from fedexp.core.part import Range
from fedexp.sweep.launchers.contract import Ends, Launcher, Live, PointEnd, needed


@dataclass(frozen=True, kw_only=True)
class Ray(Launcher):
    """Gives each point `cpus` and `gpus` of the cluster at `address`, or of one that is started here for the sweep."""

    address: str | None = None
    cpus: Annotated[float, Range(0)] = 1.0
    gpus: Annotated[float, Range(0)] = 0.0
    jobs: Annotated[int, Range(1)] | None = None

    def refuse(self) -> None:
        needed("ray", "ray", "hydra/launcher=ray")

    def launch(self, todo: Iterator[Path], live: Live) -> Ends:
        """A point whose process dies is taken up once more by Ray itself."""
        ray = self._started()
        remote = ray.remote(num_cpus=self.cpus, num_gpus=self.gpus, max_retries=1)(live_alone)
        flying: dict[Any, Path] = {}
        try:
            for folder in todo:
                flying[remote.remote(live, folder)] = folder
                if len(flying) >= self._places(ray):
                    yield _landed(ray, flying)
            while flying:
                yield _landed(ray, flying)
        finally:
            ray.shutdown()

    def _started(self) -> Any:
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # tasks without GPUs leave the variables alone
        ray = needed("ray", "ray", "hydra/launcher=ray")
        own = {} if self.address else {"num_cpus": self.jobs, "include_dashboard": False}
        ray.init(address=self.address, log_to_driver=False, logging_level="error", ignore_reinit_error=True, **own)
        return ray

    def _places(self, ray: Any) -> int:
        """How many points are submitted at once: those that can run, and one that waits."""
        if self.jobs is not None:
            return self.jobs
        cores = ray.cluster_resources().get("CPU", 1)
        return max(1, int(cores / self.cpus)) + 1 if self.cpus else int(cores)


def live_alone(live: Live, folder: Path) -> PointEnd:
    """A named function for Ray, which names tasks by their function; a partial has no name."""
    return live(folder)


def _landed(ray: Any, flying: dict[Any, Path]) -> PointEnd:
    done = next(islice(ray.wait(list(flying), num_returns=1)[0], 1))
    folder = flying.pop(done)
    try:
        return ray.get(done)
    except ray.exceptions.RayError as error:
        return PointEnd(folder, FAILED, f"its task ended without a result: {type(error).__name__}")
