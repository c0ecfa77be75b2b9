"""Compares a replayed round with the recorded one: bit by bit in the same environment, else within rounding."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fedexp.core.csv_table import Line
from fedexp.run.tables import TIMINGS

TOLERANCE = 1e-3  # for sums in another order; relative for numbers above 1


@dataclass(frozen=True)
class Difference:
    """A round, and what differs in it."""

    round: int
    what: str

    def __str__(self) -> str:
        return f"round {self.round} differs: {self.what}"


def first_difference(written: Line, replayed: Line, tolerance: float, blank: bool) -> tuple[str, str, str] | None:
    """The first column that differs, with both values; with `blank`, empty cells of the record are not compared.

    Clocks are left out, and columns that only one version of the program writes.
    """
    for name, value in written.items():
        if name in TIMINGS or name not in replayed or (blank and not value):
            continue
        if not alike(value, replayed[name], tolerance):
            return name, value, replayed[name]
    return None


def differing_clients(written: Sequence[Line], replayed: Sequence[Line], tolerance: float) -> str:
    """The first difference between the recorded and replayed clients of a round, in words; empty if there is none."""
    if len(written) != len(replayed):
        return f"{len(written)} lines in clients.csv, {len(replayed)} now"
    for one, other in zip(written, replayed, strict=True):
        if found := first_difference(one, other, tolerance, blank=False):
            name, was, now = found
            return f"{name} of client {one['client']} is {was or 'empty'} in clients.csv, {now or 'empty'} now"
    return ""


ENDLESS = ("inf", "-inf")  # as older runs wrote what is an empty cell now


def alike(written: str, replayed: str, tolerance: float) -> bool:
    """Whether two cells agree; whole numbers are counts and must be equal, as must texts."""
    if written == replayed or (written in ENDLESS and not replayed):
        return True
    if written.isdecimal() and replayed.isdecimal():
        return False
    try:
        one, other = float(written), float(replayed)
    except ValueError:
        return False
    return math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance) if tolerance else one == other


def other_surroundings(then: list[dict[str, str]], now: dict[str, str]) -> str | None:
    """How the environment of the run differed from the present one, in words; None if it did not."""
    if not then:
        return "the folder does not say where it was made"
    told = [
        f"{name} {was[name]} then, {now.get(name, 'none')} now"
        for was in then
        for name in was
        if was[name] != now.get(name)
    ]
    return ", ".join(dict.fromkeys(told)) or None
