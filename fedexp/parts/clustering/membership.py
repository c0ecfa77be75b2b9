"""Which clients are in which cluster and which wait: plain arrays that a checkpoint can hold. Clusters count from 1."""

from dataclasses import dataclass, replace

import numpy as np
import torch

from fedexp.parts import Memory, lookup_by_owner

NAMES = ("owner", "cluster", "waiting", "waits_for", "since")


@dataclass(frozen=True)
class Membership:
    """`owner [n]` ascending, `cluster [n]`; `waiting [q]` by arrival, `waits_for [q]` and the round, `since [q]`."""

    owner: np.ndarray
    cluster: np.ndarray
    waiting: np.ndarray
    waits_for: np.ndarray
    since: np.ndarray

    @staticmethod
    def load(memory: Memory) -> "Membership":
        """Reads a membership from a part's memory; empty before the first round."""
        nobody = torch.zeros(0, dtype=torch.int64)
        return Membership(*(memory.get(name, nobody).numpy() for name in NAMES))

    def save(self) -> Memory:
        """The membership as a part's memory."""
        return {name: torch.from_numpy(getattr(self, name)) for name in NAMES}

    def clusters_of(self, owner: np.ndarray) -> np.ndarray:
        """The clusters `[m]` of the clients `owner [m]`; 0 for those in none."""
        return lookup_by_owner(owner, self.owner, self.cluster)

    def enqueue(self, client: int, cluster: int, number: int) -> "Membership":
        """A membership with one more client at the end of the queue."""
        return replace(
            self,
            waiting=np.append(self.waiting, client),
            waits_for=np.append(self.waits_for, cluster),
            since=np.append(self.since, number),
        )

    def admit(self, positions: np.ndarray) -> "Membership":
        """A membership with the clients at `positions [p]` of the queue moved into their clusters."""
        owner = np.concatenate([self.owner, self.waiting[positions]])
        cluster = np.concatenate([self.cluster, self.waits_for[positions]])
        order, stays_queued = np.argsort(owner, kind="stable"), np.ones(len(self.waiting), dtype=bool)
        stays_queued[positions] = False
        return Membership(
            owner[order],
            cluster[order],
            self.waiting[stays_queued],
            self.waits_for[stays_queued],
            self.since[stays_queued],
        )

    def sizes(self, clusters: int) -> np.ndarray:
        """Members of each cluster, int64 [clusters]."""
        return np.bincount(self.cluster, minlength=clusters + 1)[1:]

    def next_in_queue(self, limit: int | None) -> np.ndarray:
        """Positions `[p]` of clients in the queue whose turn it is: the first `limit` of each cluster (None: all)."""
        if limit is None:
            return np.arange(len(self.waiting))
        turn = [int((self.waits_for[:at] == self.waits_for[at]).sum()) for at in range(len(self.waiting))]
        return np.flatnonzero(np.array(turn, np.int64) < limit)
