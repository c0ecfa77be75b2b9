"""Rows that clients keep between rounds. Legend: C participants, n clients with a kept row, W kept entries of a row."""

from dataclasses import dataclass

import numpy as np
import torch

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
        held = {**empty, **memory}
        return ClientRows(held["owner"], held["rows"])

    def save(self) -> Memory:
        """The owners and rows by name, in the form that a checkpoint stores."""
        return {"owner": self.owner, "rows": self.rows}

    def restore(self, owner: np.ndarray, start: torch.Tensor, columns: np.ndarray | slice) -> torch.Tensor:
        """`start [C, D]` with its W `columns` replaced for those clients of `owner [C]` that have kept rows."""
        held = self.owner.numpy()
        place = np.searchsorted(held, owner)
        known = np.flatnonzero(np.isin(owner, held))
        if len(known) == 0 or self.rows.shape[1] == 0:
            return start
        result, device = start.clone(), self.rows.device
        rows, kept = torch.from_numpy(known).to(device), self.rows[torch.from_numpy(place[known]).to(device)]
        if isinstance(columns, slice):
            result[rows, columns] = kept
        else:
            result[rows[:, None], torch.from_numpy(columns).to(device)] = kept
        return result

    def put(self, owner: np.ndarray, rows: torch.Tensor) -> "ClientRows":
        """A copy with the rows `[C, W]` of the clients `owner [C]` replaced; rows without columns are not stored."""
        if rows.shape[1] == 0:
            return self
        stay = np.flatnonzero(~np.isin(self.owner.numpy(), owner))
        merged = np.concatenate([self.owner.numpy()[stay], owner])
        order = torch.from_numpy(np.argsort(merged, kind="stable"))
        together = torch.cat([self.rows[torch.from_numpy(stay).to(rows.device)], rows])
        return ClientRows(torch.from_numpy(merged)[order], together[order.to(rows.device)])


def remembered(memory: Memory, trained: Trained, rows: torch.Tensor) -> Memory:
    """The memory after a round, updated with those of `rows [C, W]` whose training result is valid."""
    kept = np.flatnonzero(trained.kept())
    held = ClientRows.load(memory, rows.shape[1], rows)
    return held.put(trained.owner[kept], rows[torch.from_numpy(kept).to(rows.device)]).save()
