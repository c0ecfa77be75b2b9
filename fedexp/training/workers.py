"""Workers: the jobs of a round shared out over processes that each hold the whole run.

Every process executes the same deterministic program; only the jobs (a client's training, a chunk of an evaluation)
are shared out. Whoever is free claims the next one from a counter in the group's store, writes its rows in a matrix
of zeros, and a sum over the processes (gloo on CPU cores, NCCL on GPUs) gives all of them the whole matrix.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar

import numpy as np
import torch
import torch.distributed as dist

T = TypeVar("T")


@dataclass(eq=False)
class Work:
    """Jobs whose results are rows of `out`: positions and the function that computes them."""

    out: torch.Tensor
    jobs: list[tuple[np.ndarray, Callable[[], torch.Tensor]]] = field(default_factory=list)


class Crew:
    """The process that works alone; the base of the one that shares."""

    rank = 0
    size = 1

    def __init__(self) -> None:
        self.background: list[Work] = []

    def execute(self, work: Work) -> None:
        """Does all jobs of the work, and of the background while somebody is idle; afterwards both are done."""
        self._do([work, *self.background])
        self.background.clear()

    def defer(self, work: Work) -> None:
        """Takes work that may wait; alone there is nothing to gain by waiting."""
        self._do([work])

    def settle(self, work: Work) -> None:
        """Does deferred work if that has not happened yet."""
        if work in self.background:
            self._do(self.background)
            self.background.clear()

    def agree(self, value: T) -> T:
        """The first process's value, in all of them."""
        return value

    def _do(self, works: list[Work]) -> None:
        for work in works:
            for rows, job in work.jobs:
                work.out[torch.from_numpy(rows)] = job()


class SharedCrew(Crew):
    """One of several processes of a torch.distributed group."""

    def __init__(self, store: dist.Store, device: torch.device) -> None:
        super().__init__()
        self.store = dist.PrefixStore("jobs", store)
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.device = device
        self.calls = 0

    def agree(self, value: T) -> T:
        holder = [value]
        dist.broadcast_object_list(holder, src=0, device=self.device)
        return holder[0]

    def defer(self, work: Work) -> None:
        """Keeps work for whoever is idle in the next `execute`."""
        self.background.append(work)

    def _do(self, works: list[Work]) -> None:
        jobs = [(work.out, rows, job) for work in works for rows, job in work.jobs]
        self.calls += 1
        while (position := self.store.add(str(self.calls), 1) - 1) < len(jobs):
            out, rows, job = jobs[position]
            out[torch.from_numpy(rows)] = job()
        for work in works:
            if work.jobs:
                dist.all_reduce(work.out)
        if self.rank == 0:
            self.store.delete_key(str(self.calls - 1))


def join(rank: int, size: int, store: dist.Store, device: torch.device) -> SharedCrew:
    """Enters the group of `size` processes that meet in the store."""
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=timedelta(hours=2))
    return SharedCrew(store, device)


def join_torchrun(device: torch.device) -> SharedCrew:
    """Enters the group that torchrun's environment describes."""
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=timedelta(hours=2))
    return SharedCrew(dist.distributed_c10d._get_default_store(), device)
