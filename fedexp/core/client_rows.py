"""Rows that clients keep between rounds, and what is known by client.

Legend: C participants, n clients with a kept row, W kept entries of a row.
"""

from dataclasses import dataclass

import numpy as np
import torch

from fedexp.core.device_arrays import to_device
from fedexp.core.values import Memory, Trained


@dataclass(frozen=True)
class ClientRows:
    """Rows that clients keep between rounds, stored at first use: `owner [n]` ascending, `rows [n, W]`."""

    owner: torch.Tensor
    rows: torch.Tensor

    @staticmethod
    def load(memory: Memory, width: int, like: torch.Tensor) -> "ClientRows":
        """The rows that a memory holds, none at the start; `like` (any shape) gives type and device, `width` is W."""
        empty = {"owner": torch.zeros(0, dtype=torch.int64), "rows": like.new_zeros((0, width))}
        state = {**empty, **memory}
        return ClientRows(state["owner"], state["rows"])

    def save(self) -> Memory:
        """The owners and rows by name, in the form that a checkpoint stores."""
        return {"owner": self.owner, "rows": self.rows}

    def restore(self, owner: np.ndarray, start: torch.Tensor, columns: np.ndarray | slice) -> torch.Tensor:
        """`start [C, D]` with its W `columns` replaced for those clients of `owner [C]` that have kept rows."""
        rows, stored_rows = self._matches(owner)
        if len(rows) == 0 or self.rows.shape[1] == 0:
            return start
        result, device = start.clone(), self.rows.device
        if isinstance(columns, slice):
            result[rows, columns] = stored_rows
        else:
            result[rows[:, None], to_device(columns, device)] = stored_rows
        return result

    def with_valid_rows(self, owner: np.ndarray, rows: torch.Tensor, valid: np.ndarray) -> "ClientRows":
        """A copy with those of the rows `[C, W]` of the clients `owner [C]` replaced that are `valid`, bool [C]."""
        positions = np.flatnonzero(valid)
        return self.with_rows(owner[positions], rows[to_device(positions, rows.device)])

    def with_rows(self, owner: np.ndarray, rows: torch.Tensor) -> "ClientRows":
        """A copy with the rows `[C, W]` of the clients `owner [C]` replaced; rows without columns are not stored."""
        if rows.shape[1] == 0:
            return self
        other_rows = np.flatnonzero(~np.isin(self.owner.numpy(), owner))
        other_owners = self.owner.numpy()[other_rows]
        all_owners = np.sort(np.concatenate([other_owners, owner]))
        all_rows = rows.new_empty((len(all_owners), rows.shape[1]))
        for part, values in ((other_owners, self.rows[to_device(other_rows, rows.device)]), (owner, rows)):
            all_rows[to_device(np.searchsorted(all_owners, part), rows.device)] = values
        return ClientRows(torch.from_numpy(all_owners), all_rows)

    def rows_of(self, owner: np.ndarray) -> torch.Tensor:
        """The rows `[C, W]` of the clients `owner [C]`; 0 for those that have kept none."""
        result = self.rows.new_zeros((len(owner), self.rows.shape[1]))
        rows, stored_rows = self._matches(owner)
        result[rows] = stored_rows
        return result

    def _matches(self, owner: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """The positions `[m]` in `owner [C]` of those that have kept rows, and these rows `[m, W]`."""
        stored_owners, device = self.owner.numpy(), self.rows.device
        matching = np.flatnonzero(np.isin(owner, stored_owners))
        stored = np.searchsorted(stored_owners, owner[matching])
        return to_device(matching, device), self.rows[to_device(stored, device)]


def store_rows(memory: Memory, trained: Trained, rows: torch.Tensor) -> Memory:
    """The memory after a round, updated with those of `rows [C, W]` whose training result is valid."""
    client_rows = ClientRows.load(memory, rows.shape[1], rows)
    return client_rows.with_valid_rows(trained.owner, rows, trained.valid_rows()).save()


def restore_rows(memory: Memory, owner: np.ndarray, rows: torch.Tensor) -> torch.Tensor:
    """`rows [n, D]` with their first W columns replaced for those of `owner [n]` of whom a memory holds a row `[W]`."""
    columns = memory["rows"].shape[1] if "rows" in memory else 0
    return ClientRows.load(memory, columns, rows).restore(owner, rows, slice(0, columns))


def rows_or_zeros(memory: Memory, owner: np.ndarray, like: torch.Tensor) -> torch.Tensor:
    """The rows `[n, W]` that a memory holds of the clients `owner [n]`, 0 where it holds none; `like` is `[n, W]`."""
    return ClientRows.load(memory, like.shape[1], like).rows_of(owner)


def positions_of(owner: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Where each of the clients `owner [n]` stands in `among [m]`, which holds each once, int64 [n]."""
    order = np.argsort(among, kind="stable")
    return order[np.searchsorted(among, owner, sorter=order)]


def lookup_by_owner(owner: np.ndarray, known_owners: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The values `[n]` of `owner [n]`, given the `values [m]` of the ascending `known_owners [m]`; 0 for the others."""
    if not len(known_owners):
        return np.zeros(len(owner), dtype=values.dtype)
    positions = np.searchsorted(known_owners, owner).clip(max=len(known_owners) - 1)
    return np.where(known_owners[positions] == owner, values[positions], 0)
