"""Compares a recomputed round with the recorded one: bit by bit in the same environment, else within rounding."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from fedexp.files.run_tables import Line
from fedexp.run.tables import TIMINGS

TOLERANCE = 1e-3  # for sums in another order; relative for numbers above 1
ROUNDING = 1e-9  # for what is computed again from the same files


@dataclass(frozen=True)
class Difference:
    """A round, and what differs in it."""

    round: int
    description: str

    def __str__(self) -> str:
        return f"round {self.round} differs: {self.description}"


def line_difference(table: str, written: Line, recomputed: Line, tolerance: float, blank: bool = False) -> str:
    """The first column that differs, with both values, in words; empty if there is none.

    Clocks are left out, and with `blank` empty cells of the record. A column that is not written now must be empty.
    """
    for name, cell in written.items():
        now = recomputed.get(name, "")
        if name not in TIMINGS and (cell or not blank) and not cells_agree(cell, now, tolerance):
            owner = f" of client {written['client']}" if "client" in written else ""
            return f"{name}{owner} is {cell or 'empty'} in {table}, {now or 'empty'} now"
    return ""


def differing_columns(table: str, written: Collection[str], recomputed: Collection[str]) -> str:
    """Which columns a table has that no run writes, or lacks, in words; empty if there are none."""
    if odd := [name for name in written if name not in recomputed]:
        return f"{table} has a column {odd[0]}, which no such run writes"
    missing = [name for name in recomputed if name not in written]
    return f"{table} has no column {missing[0]}" if missing else ""


def differing_lines(table: str, written: Sequence[Line], recomputed: Sequence[Line], tolerance: float) -> str:
    """The first difference between recorded and recomputed lines of clients, in words; empty if there is none."""
    if len(written) != len(recomputed):
        return f"{len(written)} lines in {table}, {len(recomputed)} now"
    for lines in zip(written, recomputed, strict=True):
        if problem := differing_columns(table, *lines) or line_difference(table, *lines, tolerance):
            return problem
    return ""


def cells_agree(written: str, recomputed: str, tolerance: float) -> bool:
    """Whether two cells agree within the tolerance; whole numbers are counts and must be equal, as must texts."""
    if written == recomputed:
        return True
    if written.isdecimal() and recomputed.isdecimal():
        return False
    try:
        written_value, recomputed_value = float(written), float(recomputed)
    except ValueError:
        return False
    return (
        math.isclose(written_value, recomputed_value, rel_tol=tolerance, abs_tol=tolerance)
        if tolerance
        else written_value == recomputed_value
    )


def values_agree(written: Any, now: Any, tolerance: float) -> bool:
    """Whether two values of a memory or a summary agree; numbers within the tolerance, relative and absolute."""
    if isinstance(written, Mapping) and isinstance(now, Mapping):
        return written.keys() == now.keys() and all(values_agree(written[key], now[key], tolerance) for key in now)
    if isinstance(written, torch.Tensor) and isinstance(now, torch.Tensor):
        now = now.to(written.device)
        if written.shape != now.shape or written.dtype != now.dtype or not written.is_floating_point():
            return torch.equal(written, now)
        return torch.allclose(written, now, tolerance, tolerance, equal_nan=True)
    if isinstance(written, float) and isinstance(now, float):
        equally_nan = math.isnan(written) and math.isnan(now)
        return equally_nan or math.isclose(written, now, rel_tol=tolerance, abs_tol=tolerance)
    return type(written) is type(now) and written == now


def spans(numbers: Sequence[int]) -> str:
    """Formats ascending numbers as ranges.

    Example:
        >>> spans([1, 2, 3, 5, 7, 8])
        '1-3, 5, 7, 8'
    """
    sequences = np.split(np.array(numbers), np.flatnonzero(np.diff(numbers) != 1) + 1)
    texts = [
        f"{sequence[0]}-{sequence[-1]}" if len(sequence) > 2 else ", ".join(map(str, sequence.tolist()))
        for sequence in sequences
    ]
    return ", ".join(texts)


def name_rounds(numbers: Sequence[int]) -> str:
    """Names ascending rounds: `round 3`, `rounds 1-3, 5`."""
    return f"round{'s' * (len(numbers) > 1)} {spans(numbers)}"
