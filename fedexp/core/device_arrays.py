"""The host's arrays on a device, and rows of tensors there."""

from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch


def to_device(array: np.ndarray, device: torch.device) -> torch.Tensor:
    """An array of any shape but `[]`, such as example numbers, on a device; the host does not wait for a GPU."""
    host = torch.from_numpy(np.ascontiguousarray(array))
    if device.type == "cuda":
        return host.pin_memory().to(device, non_blocking=True)
    return host.to(device)


Rows = torch.Tensor | Sequence[torch.Tensor]  # [n, ...]: a matrix, or its rows one by one


def place_rows(pieces: Sequence[torch.Tensor], positions: Sequence[np.ndarray]) -> Rows:
    """Rows `[n, ...]`, of which each piece has those at its positions; a single piece has all, in their order.

    Nothing is copied on a CPU. On a GPU they become one matrix: a kernel for each row would take longer.
    """
    if len(pieces) == 1:
        return pieces[0]
    rows = list(chain.from_iterable(piece.unbind() for piece in pieces))
    rows = [rows[number] for number in np.argsort(np.concatenate(positions)).tolist()]
    return torch.stack(rows) if rows[0].is_cuda else rows


def as_matrix(rows: Rows) -> torch.Tensor:
    """The rows as one matrix `[n, ...]`."""
    return rows if isinstance(rows, torch.Tensor) else torch.stack(list(rows))


def subtract_rows(rows: torch.Tensor, subtrahends: Rows) -> torch.Tensor:
    """The rows `[n, D]` minus as many others, in place of the first."""
    if isinstance(subtrahends, torch.Tensor):
        return rows.sub_(subtrahends)
    for row, subtrahend in zip(rows.unbind(), subtrahends, strict=True):
        row.sub_(subtrahend)
    return rows


def gather_rows(rows: Rows, positions: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """The rows at the positions `[m]`, as one matrix `[m, ...]`, written into `out` if that is given."""
    if isinstance(rows, torch.Tensor):
        return torch.index_select(rows, 0, positions, out=out)
    return torch.stack([rows[number] for number in positions.tolist()], out=out)


def neighbours(positions: np.ndarray) -> slice | None:
    """The slice of rows that `positions [n]` are, in this order; None where they are no neighbours."""
    first = int(positions[0]) if len(positions) else 0
    is_run = np.array_equal(positions, np.arange(first, first + len(positions)))
    return slice(first, first + len(positions)) if is_run else None


def as_index(positions: np.ndarray, device: torch.device) -> slice | torch.Tensor:
    """Positions `[n]` as an index of rows on a device; neighbours are a slice, which copies nothing."""
    rows = neighbours(positions)
    return to_device(positions, device) if rows is None else rows


def finite(rows: torch.Tensor) -> np.ndarray:
    """Which rows `[C, D]` hold only finite numbers, bool [C]."""
    low, high = rows.amin(dim=1), rows.amax(dim=1)  # NaN if any entry is; no second matrix, and aminmax(dim=1) is slow
    return (low.isfinite() & high.isfinite()).cpu().numpy()


def is_finite_row(row: torch.Tensor) -> torch.Tensor:
    """Whether a row `[D]` holds only finite numbers, bool `[]` on its device."""
    low, high = row.aminmax()
    return low.isfinite() & high.isfinite()
