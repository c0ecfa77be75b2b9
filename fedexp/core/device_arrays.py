"""The host's arrays on a device, and rows of tensors there."""

from collections.abc import Sequence

import numpy as np
import torch


def to_device(array: np.ndarray, device: torch.device) -> torch.Tensor:
    """An array of any shape but `[]`, such as example numbers, on a device; the host does not wait for a GPU."""
    host = torch.from_numpy(np.ascontiguousarray(array))
    if device.type == "cuda":
        return host.pin_memory().to(device, non_blocking=True)
    return host.to(device)


def join_rows(pieces: Sequence[torch.Tensor]) -> torch.Tensor:
    """Rows `[n, ...]` one after another; no copy where the pieces are neighbours in one tensor, or views of one row."""
    first = pieces[0]
    rows, step, end = 0, first.stride(0), first.storage_offset()
    for piece in pieces:
        same = piece.untyped_storage().data_ptr() == first.untyped_storage().data_ptr() and piece.dtype == first.dtype
        if not (same and piece.stride() == first.stride() and piece.storage_offset() == end):
            return torch.cat(list(pieces))
        rows, end = rows + len(piece), end + len(piece) * step
    return first.as_strided((rows, *first.shape[1:]), first.stride(), first.storage_offset())


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
