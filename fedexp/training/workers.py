"""Workers: the jobs of a round divided among processes that each hold the whole run.

Every process executes the same deterministic program; only the jobs (a client's training, a chunk of an evaluation) are
divided. An idle process claims the next job from a counter in the group's store and writes the job's rows into a matrix
of zeros. A sum over the processes (gloo on CPU cores, NCCL on GPUs) gives all of them the whole matrix.
"""

import io
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist

T = TypeVar("T")
LOOK_S = 1.0  # between two looks at the other processes while waiting for them


@dataclass(frozen=True)
class Kind:
    """What jobs are for: the stage of a round, the unit that is counted, and what their cost is proportional to."""

    stage: str
    unit: str
    cost: str


TRAINING = Kind("training", "clients", "their steps")
FINE_TUNING = Kind("fine-tuning", "clients", "their steps")
PRETRAINING = Kind("pretraining", "models", "its steps")
EVALUATION = Kind("evaluation", "examples", "their number")
LOSSES = Kind("losses of examples", "examples", "their number")
MIXTURES = Kind("models on validation data", "models", "their number")
OTHER = Kind("other work", "results", "their number")


@dataclass(eq=False)
class Work:
    """Jobs whose results are rows of `out`: positions, and the function that computes these rows.

    `effort` is each row's cost relative to the others of its kind; None: all equal.
    """

    out: torch.Tensor
    jobs: list[tuple[np.ndarray, Callable[[], torch.Tensor]]] = field(default_factory=list)
    kind: Kind = OTHER
    effort: np.ndarray | None = None


class Crew:
    """A process that works alone; the base class of the one that shares its jobs."""

    rank = 0
    size = 1
    times_jobs = False  # whether it must see every job, from its beginning to its end

    def __init__(self) -> None:
        self.background: list[Work] = []

    def execute(self, work: Work) -> None:
        """Does all jobs of the work, and deferred jobs while a process would be idle; afterwards both are done."""
        self._do([work, *self.background])
        self.background.clear()

    def defer(self, work: Work) -> None:
        """Accepts work that may wait; a process alone does it at once."""
        self._do([work])

    def settle(self, work: Work) -> None:
        """Does deferred work if it is not done yet."""
        if work in self.background:
            self._do(self.background)
            self.background.clear()

    def alone(self, work: Work) -> None:
        """Does work in this process, whether or not there are others."""
        for rows, job in work.jobs:
            work.out[torch.from_numpy(rows)] = job()

    def agree(self, value: T) -> T:
        """The first process's value, in all of them."""
        return value

    def regrouped(self, crew: "Crew") -> "Crew":
        """The crew that takes over from this one, given the `crew` of the processes that a run has started."""
        return crew

    def watch(self, done: int, steps: int) -> None:
        """Called during a training job with the number of steps done and in all; may raise to give the job up."""

    def claim(self, jobs: int) -> Iterator[int]:
        """Yields the positions of the jobs that this process is to do."""
        yield from range(jobs)

    def gather(self, outs: list[torch.Tensor]) -> None:
        """Completes the matrices (any shape) of which every process has computed a part, in place."""

    def _do(self, works: list[Work]) -> None:
        jobs = [(work.out, rows, job) for work in works for rows, job in work.jobs]
        for position in self.claim(len(jobs)):
            out, rows, job = jobs[position]
            out[torch.from_numpy(rows)] = job()
        self.gather([work.out for work in works if work.jobs])


class SharedCrew(Crew):
    """One of several processes of a torch.distributed group."""

    def __init__(self, store: dist.Store, device: torch.device, attend: Callable[[], None] | None = None) -> None:
        super().__init__()
        self.attend = attend
        self.store = dist.PrefixStore("jobs", store)
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.device = device
        self.calls = 0

    def agree(self, value: T) -> T:
        holder = [packed(value) if self.rank == 0 else b""]
        dist.broadcast_object_list(holder, src=0, device=self.device)
        return value if self.rank == 0 else unpacked(holder[0], self.device)

    def defer(self, work: Work) -> None:
        """Keeps work for processes that are idle in the next `execute`."""
        self.background.append(work)

    def claim(self, jobs: int) -> Iterator[int]:
        self.calls += 1
        while (position := self.store.add(str(self.calls), 1) - 1) < jobs:
            yield position

    def gather(self, outs: list[torch.Tensor]) -> None:
        for out in outs:
            self._await(dist.all_reduce(out, async_op=True))
        if self.rank == 0:
            self.store.delete_key(str(self.calls - 1))

    def _await(self, pending: dist.Work) -> None:
        """Waits for the others; the process that attends to them checks them meanwhile."""
        while self.attend is not None and not pending.is_completed():
            try:
                pending.wait(timedelta(seconds=LOOK_S))
            except RuntimeError:
                if not pending.is_completed():  # it is only the timeout
                    self.attend()
        pending.wait()


class Packer(pickle.Pickler):
    """Writes tensors of a GPU as those of the host, marked."""

    def persistent_id(self, obj: Any) -> torch.Tensor | None:
        """The same numbers on the host for a tensor (any shape) of a GPU; None for everything else."""
        return obj.cpu() if isinstance(obj, torch.Tensor) and obj.device.type != "cpu" else None


class Unpacker(pickle.Unpickler):
    """Reads them onto a GPU of this process."""

    device = torch.device("cpu")

    def persistent_load(self, pid: torch.Tensor) -> torch.Tensor:
        """A marked tensor (any shape) on this process's device."""
        return pid.to(self.device)


def packed(value: Any) -> bytes:
    """A value with all its tensors, as bytes."""
    buffer = io.BytesIO()
    Packer(buffer).dump(value)
    return buffer.getvalue()


def unpacked(content: bytes, device: torch.device) -> Any:
    """The value of another process of this group; what was on its GPU comes to `device`, this process's own."""
    unpacker = Unpacker(io.BytesIO(content))
    unpacker.device = device
    return unpacker.load()


def join(
    rank: int, size: int, store: dist.Store, device: torch.device, attend: Callable[[], None] | None = None
) -> SharedCrew:
    """Enters the group of `size` processes that meet in the store; `attend` is called while waiting for the others."""
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=timedelta(hours=2))
    return SharedCrew(store, device, attend)


def join_torchrun(device: torch.device) -> SharedCrew:
    """Enters the group that torchrun's environment describes."""
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=timedelta(hours=2))
    return SharedCrew(dist.distributed_c10d._get_default_store(), device)
