"""Runs points as jobs of a Slurm cluster, or as local processes in the same manner, by submitit.

The cluster's nodes and this machine must share the folder of the sweep, the data and the Python environment.
"""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex  # results are pickles: none may lie there already
from typing import Annotated, Any, Literal

from fedexp.core.errors import ConfigError
from fedexp.core.part import Range
from fedexp.process.exits import FAILURE
from fedexp.sweep.launchers.contract import Ends, Launcher, PointEnd, RunPoint, import_optional

_POLL_S = {"local": 0.1, "slurm": 5.0}


class Submitit(Launcher):
    """At most `parallel` jobs at once; `parameters` are submitit's own (`slurm_partition`, `mem_gb`, ...)."""

    cluster: Literal["local", "slurm"]
    parallel: Annotated[int, Range(1)]
    timeout_min: Annotated[int, Range(1)]
    cpus_per_task: Annotated[int, Range(1)] = 1
    gpus_per_node: Annotated[int, Range(0)] = 0
    parameters: dict | None = None

    def refuse(self) -> None:
        import_optional("submitit", "slurm", f"hydra/launcher=submitit_{self.cluster}")
        if self.cluster == "slurm" and shutil.which("srun") is None:
            raise ConfigError(
                "hydra/launcher=submitit_slurm needs Slurm, but there is no srun here; try submitit_local"
            )

    def launch(self, todo: Iterator[Path], run_point: RunPoint) -> Ends:
        """Jobs are cancelled when this process is interrupted; when it is killed they go on by themselves."""
        running: dict[Path, Any] = {}
        executor = None
        try:
            for folder in todo:
                executor = executor or self._executor(folder.parent / ".submitit" / token_hex(4))
                while len(running) >= self.parallel:
                    yield from self._collect_outcomes(running)
                running[folder] = executor.submit(run_point, folder)
            while running:
                yield from self._collect_outcomes(running)
        finally:
            for job in running.values():
                job.cancel()

    def _executor(self, logs: Path) -> Any:
        import submitit

        executor = submitit.AutoExecutor(folder=logs, cluster=self.cluster)
        base_parameters = {"timeout_min": self.timeout_min, "cpus_per_task": self.cpus_per_task, "name": "fedexp"}
        gpus = {"gpus_per_node": self.gpus_per_node} if self.gpus_per_node else {}
        try:
            executor.update_parameters(**base_parameters, **gpus, **(self.parameters or {}))
        except (AssertionError, NameError, TypeError) as error:
            raise ConfigError(f"hydra.launcher.parameters must be what submitit knows: {error}") from error
        return executor

    def _collect_outcomes(self, running: dict[Path, Any]) -> list[PointEnd]:
        """Collects the jobs that have ended; waits a little if none has."""
        done = [folder for folder, job in running.items() if job.done()]
        if not done:
            time.sleep(_POLL_S[self.cluster])
        return [_outcome(folder, running.pop(folder)) for folder in done]


def _outcome(folder: Path, job: Any) -> PointEnd:
    error = job.exception()
    if error is None:
        return job.result()
    return PointEnd(folder, FAILURE, f"its job {job.job_id} ended without a result; see {job.paths.stderr}")
