"""Tables with a row for each client: rows can be chosen, and tables put one after another."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any, Self

import numpy as np
import torch


@dataclass(frozen=True)
class ClientTable:
    """Columns that all have a row for each entry of `owner [C]`."""

    owner: np.ndarray

    def where(self, keep: np.ndarray) -> Self:
        """The rows that `keep` names (a mask `[C]`, or positions in any order)."""
        positions = np.flatnonzero(keep) if keep.dtype == bool else keep
        if np.array_equal(positions, np.arange(len(self.owner))):
            return self
        return replace(self, **{column.name: _take(getattr(self, column.name), positions) for column in fields(self)})


def _take(column: Any, positions: np.ndarray) -> Any:
    if isinstance(column, dict):
        return {name: _take(rows, positions) for name, rows in column.items()}
    if isinstance(column, tuple | list):
        return tuple(column[position] for position in positions.tolist())
    if isinstance(column, torch.Tensor):
        if column.stride(0) == 0:  # all rows are one
            return column[: len(positions)]
        first = int(positions[0]) if len(positions) else 0
        if np.array_equal(positions, np.arange(first, first + len(positions))):
            return column[first : first + len(positions)]  # which need not be copied
        return column[torch.from_numpy(positions).to(column.device)]
    return column[positions] if isinstance(column, np.ndarray) else column


def concatenate_rows(tables: Sequence[Any]) -> Any:
    """The rows of several such dataclasses, one after another; what is no column is that of the first."""
    if len(tables) == 1:
        return tables[0]
    columns = {field.name: [getattr(table, field.name) for table in tables] for field in fields(tables[0])}
    return replace(tables[0], **{name: _concatenate(pieces) for name, pieces in columns.items()})


def _concatenate(pieces: list[Any]) -> Any:
    if isinstance(pieces[0], tuple | list):
        return tuple(chain.from_iterable(pieces))
    return {torch.Tensor: torch.cat, np.ndarray: np.concatenate}.get(type(pieces[0]), lambda same: same[0])(pieces)
