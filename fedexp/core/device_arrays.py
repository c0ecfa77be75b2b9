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


Placed = tuple[Sequence[torch.Tensor], torch.Tensor]  # pieces, and the rows that were made of them


def place_rows(
    pieces: Sequence[torch.Tensor], positions: Sequence[np.ndarray], placed: Placed | None = None
) -> torch.Tensor:
    """Rows `[n, ...]`, of which each piece has those at its positions; a single piece has all, in their order.

    Pieces that are the first columns of what was `placed` before at the same positions are not copied.
    """
    if len(pieces) == 1:
        return pieces[0]
    if placed is not None and all(map(has_columns_of, pieces, placed[0])):
        return placed[1][:, : pieces[0].shape[1]]
    rows = list(chain.from_iterable(piece.unbind() for piece in pieces))
    return torch.stack([rows[number] for number in np.argsort(np.concatenate(positions)).tolist()])


def has_columns_of(rows: torch.Tensor, wider: torch.Tensor) -> bool:
    """Whether `rows [n, P]` are the first columns of `wider [n, D]`, not a copy of them."""
    return rows.data_ptr() == wider.data_ptr() and rows.stride() == wider.stride() and rows.dtype == wider.dtype


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
