"""The worker pool: processes that each hold the whole run and share the jobs of a round.

Every process executes the same deterministic program; only the jobs (a client's training, a chunk of an evaluation) are
divided. An idle process claims the next job from a counter in the group's store and writes the job's rows into a matrix
of zeros. A sum over the processes (gloo on CPU cores, NCCL on GPUs) gives all of them the whole matrix. Processes that
share memory write into that instead, and copy the whole matrix once all jobs are done. Forked processes are started,
watched and ended in `forked.py`; what the death of one does to the run is in `simulation/rounds.py`, `with_workers`.
"""

import io
import logging
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist

from fedexp.core.device_arrays import as_index
from fedexp.core.signals import end_at_once
from fedexp.process import torchrun
from fedexp.training.workers.arena import SharedArena

log = logging.getLogger(__name__)
T = TypeVar("T")
LOOK_S = 1.0  # between two looks at the other processes while waiting for them


@dataclass(frozen=True)
class JobKind:
    """What jobs are for: the round's stage, the unit that is counted, and what their cost is proportional to."""

    stage: str
    unit: str
    cost: str


TRAINING = JobKind("training", "clients", "their steps")
FINE_TUNING = JobKind("fine-tuning", "clients", "their steps")
PRETRAINING = JobKind("pretraining", "models", "its steps")
EVALUATION = JobKind("evaluation", "examples", "their number")
LOSSES = JobKind("losses of examples", "examples", "their number")
MIXTURES = JobKind("models on validation data", "models", "their number")
OTHER = JobKind("other work", "results", "their number")


@dataclass(eq=False)
class Work:
    """Jobs that fill rows of `out`: the rows' positions, and the function that computes them.

    `effort` is each row's cost relative to the others of its kind; None: all equal. `round` is that of training.
    """

    out: torch.Tensor
    jobs: list[tuple[np.ndarray, Callable[[], torch.Tensor]]] = field(default_factory=list)
    kind: JobKind = OTHER
    effort: np.ndarray | None = None
    round: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether its jobs fill all rows."""
        return sum(len(rows) for rows, _ in self.jobs) == len(self.out)


class WorkerPool:
    """A pool of one process, this one; the base class of pools with several processes."""

    rank = 0
    size = 1
    times_jobs = False  # whether it must see every job, from its beginning to its end

    def __init__(self) -> None:
        self.background: list[Work] = []

    def execute(self, work: Work) -> None:
        """Runs all jobs of the work, and deferred jobs where a process would be idle; returns when both are done."""
        self._run_jobs([work, *self.background])
        self.background.clear()

    def defer(self, work: Work) -> None:
        """Accepts work that may wait; a process alone does it at once."""
        self._run_jobs([work])

    def finish(self, work: Work) -> None:
        """Runs deferred work if it is not done yet."""
        if work in self.background:
            self._run_jobs(self.background)
            self.background.clear()

    def run_locally(self, work: Work) -> None:
        """Runs work in this process only."""
        for rows, job in work.jobs:
            work.out[as_index(rows, work.out.device)] = job().to(work.out.dtype)

    def broadcast(self, value: T) -> T:
        """Returns the first process's value in all processes."""
        return value

    def rebind(self, pool: "WorkerPool") -> "WorkerPool":
        """Returns the pool to use from now on, given the `pool` of the processes that a run has started."""
        return pool

    def watch(self, done: int, steps: int) -> None:
        """Called during a training job with the steps done and in all; may raise to abort the job."""

    def claim(self, jobs: int) -> Iterator[int]:
        """Yields the positions of the jobs that this process is to do."""
        yield from range(jobs)

    def all_reduce(self, outs: list[torch.Tensor]) -> None:
        """Sums the matrices (any shape), of which each process computed a part, over all processes in place."""

    def shared_outs(self, works: list[Work]) -> list[torch.Tensor]:
        """Where results are written: into `out` (any shape) itself, or into memory like it that all processes see."""
        return [work.out for work in works]

    def _run_jobs(self, works: list[Work]) -> None:
        works = [work for work in works if work.jobs]
        shared_outs = self.shared_outs(works)
        jobs = [(out, rows, job) for work, out in zip(works, shared_outs, strict=True) for rows, job in work.jobs]
        for position in self.claim(len(jobs)):
            out, rows, job = jobs[position]
            out[as_index(rows, out.device)] = job().to(out.dtype)  # the losses of float64 answers are float64
        self.all_reduce([work.out for work, out in zip(works, shared_outs, strict=True) if out is work.out])
        for work, out in zip(works, shared_outs, strict=True):
            if out is not work.out:
                work.out.copy_(out)


class SharedWorkerPool(WorkerPool):
    """This process's side of a torch.distributed group that shares jobs."""

    def __init__(
        self,
        store: dist.Store,
        device: torch.device,
        monitor: Callable[[], None] | None = None,
        arena: SharedArena | None = None,
    ) -> None:
        super().__init__()
        self.monitor, self.arena = monitor, arena
        self.store = dist.PrefixStore("jobs", store)
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.device = device
        self.calls = 0

    def broadcast(self, value: T) -> T:
        holder = [pickle_value(value) if self.rank == 0 else b""]
        dist.broadcast_object_list(holder, src=0, device=self.device)
        return value if self.rank == 0 else unpickle_value(holder[0], self.device)

    def defer(self, work: Work) -> None:
        """Queues work for processes that are idle in the next `execute`."""
        self.background.append(work)

    def claim(self, jobs: int) -> Iterator[int]:
        self.calls += 1
        while (position := self.store.add(str(self.calls), 1) - 1) < jobs:
            yield position

    def all_reduce(self, outs: list[torch.Tensor]) -> None:
        for out in outs or [torch.zeros(1, device=self.device)]:  # so that nobody goes on before all are here
            self._wait_for(dist.all_reduce(out, async_op=True))
        if self.rank == 0:
            self.store.delete_key(str(self.calls - 1))

    def shared_outs(self, works: list[Work]) -> list[torch.Tensor]:
        if self.arena is None or not all(work.is_whole for work in works):
            return super().shared_outs(works)
        return self.arena.views([work.out for work in works])

    def _run_jobs(self, works: list[Work]) -> None:
        if self.arena is not None and sum(len(work.jobs) for work in works) == 1:
            for work in works:  # each process does a single job itself, sooner than another would send its result
                self.run_locally(work)
        else:
            super()._run_jobs(works)

    def _wait_for(self, pending: dist.Work) -> None:
        """Waits for a collective operation, checking the other processes meanwhile if this one monitors them."""
        while self.monitor is not None and not pending.is_completed():
            try:
                pending.wait(timedelta(seconds=LOOK_S))
            except RuntimeError:
                if not pending.is_completed():  # it is only the timeout
                    self.monitor()
        pending.wait()


class TensorPickler(pickle.Pickler):
    """A pickler that stores GPU tensors as marked CPU tensors."""

    def persistent_id(self, obj: Any) -> torch.Tensor | None:
        """Returns a CPU copy of a GPU tensor (any shape), None for everything else."""
        return obj.cpu() if isinstance(obj, torch.Tensor) and obj.device.type != "cpu" else None


class TensorUnpickler(pickle.Unpickler):
    """An unpickler that moves marked tensors to this process's device."""

    device = torch.device("cpu")

    def persistent_load(self, pid: torch.Tensor) -> torch.Tensor:
        """Returns a marked tensor (any shape) on this process's device."""
        return pid.to(self.device)


def pickle_value(value: Any) -> bytes:
    """Pickles a value with all its tensors."""
    buffer = io.BytesIO()
    TensorPickler(buffer).dump(value)
    return buffer.getvalue()


def unpickle_value(content: bytes, device: torch.device) -> Any:
    """Unpickles the value of another process; its GPU tensors come to `device`."""
    unpacker = TensorUnpickler(io.BytesIO(content))
    unpacker.device = device
    return unpacker.load()


def join(
    rank: int,
    size: int,
    store: dist.Store,
    device: torch.device,
    monitor: Callable[[], None] | None = None,
    arena: SharedArena | None = None,
) -> SharedWorkerPool:
    """Joins the group of `size` processes by their store; `monitor` is called while waiting for the others."""
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=timedelta(hours=2))
    return SharedWorkerPool(store, device, monitor, arena)


def join_torchrun(device: torch.device) -> SharedWorkerPool:
    """Joins the group that torchrun's environment describes, once all its processes are there."""
    log.info("%d processes of torchrun meet at %s", torchrun.processes(), torchrun.meeting_point())
    with end_at_once():
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=timedelta(hours=2))
    return SharedWorkerPool(dist.distributed_c10d._get_default_store(), device)
