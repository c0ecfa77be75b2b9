"""Files that say who has which example: for `federation=file`, and traces of a fleet."""

import csv
import io
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from scripts.fuzz.arrays import ARRAYS, npy
from scripts.fuzz.judged import Input
from scripts.fuzz.odd_tables import COLUMNS, ENCODINGS, REWRITTEN
from scripts.fuzz.users_files import damaged, run_on, written

ROWS = 24
DATA = ("dataset=synthetic", "dataset.shape=[4]", "dataset.classes=3", f"dataset.train_size={ROWS}")
USUAL = (*DATA, "dataset.test_size=12", "model=logistic", "scenario.clients=3")
MORE: dict[str, Callable[[int], Any]] = {
    "numbers and empty": lambda row: ("", 0, 1)[row % 3],
    "-1": lambda row: row % 3 - 1,
    "-1 alone": lambda _: -1,
    "-1 and names": lambda row: ("-1", "a", "b")[row % 3],
    "-1.0": lambda row: ("-1.0", "-1e0", "0")[row % 3],
    "-2": lambda row: row % 3 - 2,
    "1e0": lambda row: f"{row % 3}e0",
    "2.0": lambda row: f"{row % 3}.0",
    "007": lambda row: f"00{row % 3}",
    "7 and 007": lambda row: ("7", "007", "7.0")[row % 3],
    "+1": lambda row: f"+{row % 3}",
    "2**53": lambda row: 2**53 + row % 3,
    "other digits": lambda row: ("\u0661", "\u0662", "\u00b2")[row % 3],
    "one client": lambda _: "a",
    "a client each": lambda row: row,
}
COLUMN: dict[str, tuple[str, ...]] = {
    "the only column": (),
    "a column": ("federation.column=c",),
    "a column of the name of none": ("federation.column=nothing",),
    "one of two columns": (),
}
TRACED = ("client", "round", "bandwidth_mbit", "compute_samples_per_s")


def owners() -> Iterator[Input]:
    """Every column of owners in every way of naming it, odd files and vectors, and traces of a fleet."""
    for (what, cell), (way, words) in product((COLUMNS | MORE).items(), COLUMN.items()):
        yield _owners(f"{what}, as {way}", _cells(way, cell), words)
    for what, change in REWRITTEN.items():
        yield _owners(f"{what}, as a file", lambda change=change: change(_whole()).encode(), ("federation.column=who",))
    for code in ENCODINGS:
        yield _owners(f"encoded as {code}", lambda code=code: _whole("é").encode(code), ("federation.column=who",))
    for count in (0, 1, ROWS - 1, ROWS + 1, 10 * ROWS):
        yield _owners(f"{count} lines", lambda count=count: _csv(["c"], [[row % 2] for row in range(count)]), ())
    for what, content in ARRAYS.items():
        yield _owners(f"a vector: {what}", content, (), "npy")
    vector = npy(np.arange(ROWS) % 3)
    for number in range(80):
        yield _owners(
            f"damage {number}", lambda number=number: damaged(_whole().encode(), number), ("federation.column=who",)
        )
        yield _owners(f"a vector with damage {number}", lambda number=number: damaged(vector, number), (), "npy")
    yield from _traces()


def _traces() -> Iterator[Input]:
    for (place, name), (what, cell) in product(enumerate(TRACED), (COLUMNS | MORE).items()):
        yield _traced(f"{name} with {what}", lambda place=place, cell=cell: _trace(place, cell))
    for number in range(40):
        yield _traced(f"damage {number}", lambda number=number: damaged(_trace(), number))


def _owners(what: str, content: Callable[[], bytes], words: tuple[str, ...], kind: str = "csv") -> Input:
    prepare = written(f"owners.{kind}", content)
    return run_on(prepare, what, *USUAL, "federation=file", f"federation.path=mine/owners.{kind}", *words)


def _traced(what: str, content: Callable[[], bytes]) -> Input:
    prepare = written("trace.csv", content)
    return run_on(prepare, f"a trace: {what}", *USUAL, "fleet=simulated", "fleet.trace=mine/trace.csv")


def _cells(way: str, cell: Callable[[int], Any]) -> Callable[[], bytes]:
    if way == "one of two columns":
        return lambda: _csv(["c", "d"], [[cell(row), row] for row in range(ROWS)])
    return lambda: _csv(["c"], [[cell(row)] for row in range(ROWS)])


def _csv(header: list[str], rows: list[list[Any]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([header, *rows])
    return text.getvalue().encode(errors="surrogatepass")


def _whole(name: str = "a") -> str:
    return "x,word,y,who\n" + "".join(f"{row},b,{row % 3},{name}{row % 3}\n" for row in range(ROWS))


def _trace(place: int = -1, cell: Callable[[int], Any] = str) -> bytes:
    rows = [[row % 3, row // 3 + 1, 5 + row, 100 + row] for row in range(9)]
    return _csv(
        [*TRACED],
        [[cell(row) if at == place else value for at, value in enumerate(values)] for row, values in enumerate(rows)],
    )
