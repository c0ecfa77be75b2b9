"""Compares a replayed round with the recorded one: bit by bit in the same environment, else within rounding."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fedexp.files.run_tables import Line
from fedexp.run.tables import TIMINGS

TOLERANCE = 1e-3  # for sums in another order; relative for numbers above 1


@dataclass(frozen=True)
class Difference:
    """A round, and what differs in it."""

    round: int
    description: str

    def __str__(self) -> str:
        return f"round {self.round} differs: {self.description}"


def first_difference(
    written: Line, replayed: Line, tolerance: float, blank: bool = False
) -> tuple[str, str, str] | None:
    """The first column that differs, with both values; with `blank`, empty cells of the record are not compared.

    Clocks are left out. A column that is not written now must be empty.
    """
    for name, value in written.items():
        if name in TIMINGS or (blank and not value):
            continue
        if not cells_agree(value, replayed.get(name, ""), tolerance):
            return name, value, replayed.get(name, "")
    return None


def differing_columns(table: str, written: Collection[str], replayed: Collection[str]) -> str:
    """Which columns a table has that no run writes, or lacks, in words; empty if there are none."""
    if odd := [name for name in written if name not in replayed]:
        return f"{table} has a column {odd[0]}, which no such run writes"
    missing = [name for name in replayed if name not in written]
    return f"{table} has no column {missing[0]}" if missing else ""


def differing_lines(table: str, written: Sequence[Line], replayed: Sequence[Line], tolerance: float) -> str:
    """The first difference between recorded and replayed lines of clients, in words; empty if there is none."""
    if len(written) != len(replayed):
        return f"{len(written)} lines in {table}, {len(replayed)} now"
    for written_line, replayed_line in zip(written, replayed, strict=True):
        if problem := differing_columns(table, written_line, replayed_line):
            return problem
        if difference := first_difference(written_line, replayed_line, tolerance):
            name, was, now = difference
            return f"{name} of client {written_line['client']} is {was or 'empty'} in {table}, {now or 'empty'} now"
    return ""


def cells_agree(written: str, replayed: str, tolerance: float) -> bool:
    """Whether two cells agree within the tolerance; whole numbers are counts and must be equal, as must texts."""
    if written == replayed:
        return True
    if written.isdecimal() and replayed.isdecimal():
        return False
    try:
        written_value, replayed_value = float(written), float(replayed)
    except ValueError:
        return False
    return (
        math.isclose(written_value, replayed_value, rel_tol=tolerance, abs_tol=tolerance)
        if tolerance
        else written_value == replayed_value
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


def changed_surroundings(then: list[dict[str, str]], now: dict[str, str]) -> str | None:
    """How the environment of the run differed from the present one, in words; None if it did not."""
    if not then:
        return "the folder does not say where it was made"
    changes = [
        f"{name} {was[name]} then, {now.get(name, 'none')} now"
        for was in then
        for name in was
        if was[name] != now.get(name)
    ]
    return ", ".join(dict.fromkeys(changes)) or None
