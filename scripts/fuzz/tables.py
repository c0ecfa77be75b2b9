"""Tables of users: every kind of column in every role, odd headers, odd files, and damaged ones."""

import csv
import io
import os
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from fedexp.process.exits import USAGE_ERROR
from scripts.fuzz.judged import Input
from scripts.fuzz.odd_tables import COLUMNS, ENCODINGS, NAMES, REWRITTEN, TWICE, WORDS
from scripts.fuzz.users_files import Prepare, damaged, run_on, unless_given, written

Frame = list[tuple[str, list[Any]]]
ROWS = 24
KINDS = ("csv", "parquet")
ROLES: dict[str, tuple[str, ...]] = {  # how the odd column `c` is used
    "feature": (),
    "feature, filled": ("dataset.missing=fill",),
    "only feature": ("dataset.ignore=[x,word]",),
    "class": ("dataset.target=c",),
    "numbers": ("dataset.target=c", "dataset.predicts=numbers", "loss=mse", "scenario.local_lr=0.01"),
    "raw numbers": ("dataset.target=[c,x]", "dataset.predicts=numbers", "dataset.target_scale=raw", "loss=huber"),
    "labels": ("dataset.target=[c,y]", "dataset.predicts=labels", "loss=bce"),
    "client": ("dataset.client=c", "federation=subject"),
    "client of nobody": ("dataset.client=c", "dataset.missing=fill"),
    "split": ("dataset.split=c",),
    "ignored": ("dataset.ignore=[c]",),
}


def tables() -> Iterator[Input]:
    """Every column in every role in both formats; odd names, odd files, odd words, damaged files."""
    for (what, cell), (role, words), kind in product(COLUMNS.items(), ROLES.items(), KINDS):
        yield _table(f"{what} as {role} in {kind}", kind, _frame({"c": [cell(row) for row in range(ROWS)]}), words)
    for name, kind, use in product(NAMES, KINDS, ("", "dataset.ignore=[{}]", "dataset.client={}")):
        frame = [*_frame({}), (name, [row % 3 for row in range(ROWS)])]
        words = (use.format(_quoted(name)),) if use else ()
        yield _table(f"a column named {name[:20]!r} in {kind}", kind, frame, words, refused=name in ("x", "y"))
    for what, content in _files().items():
        yield _raw(what, "csv", content, refused=what in TWICE)
    for (what, words), kind in product(WORDS.items(), KINDS):
        yield _table(f"{what} in {kind}", kind, _frame({}), words, refused="twice" in what)
    for number, kind in product(range(75), KINDS):
        yield _raw(f"{kind} with damage {number}", kind, lambda kind=kind, number=number: damaged(_whole(kind), number))
    for what, prepare in _places().items():
        yield _input(what, prepare, "mine/table.csv", ())


def _frame(more: dict[str, list[Any]]) -> Frame:
    rows = range(ROWS)
    usual = {"x": [row / 3 for row in rows], "word": ["ab"[row % 2] for row in rows], "y": [row % 3 for row in rows]}
    return [*usual.items(), *more.items()]


def _table(what: str, kind: str, frame: Frame, words: tuple[str, ...], *, refused: bool = False) -> Input:
    return _raw(what, kind, lambda: _as_csv(frame) if kind == "csv" else _as_parquet(frame), words, refused=refused)


def _raw(
    what: str, kind: str, content: Callable[[], bytes], words: tuple[str, ...] = (), *, refused: bool = False
) -> Input:
    return _input(what, written(f"table.{kind}", content), f"mine/table.{kind}", words, refused=refused)


def _input(what: str, prepare: Prepare, file: str, words: tuple[str, ...], *, refused: bool = False) -> Input:
    usual = ("dataset=table", "dataset.target=y", f"dataset.file={file}", "model=logistic", "scenario.clients=3")
    return run_on(prepare, what, *unless_given(usual, words), codes=(USAGE_ERROR,) if refused else (0, USAGE_ERROR))


def _as_csv(frame: Frame) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([name for name, _ in frame])
    writer.writerows(zip(*(values for _, values in frame), strict=True))
    return text.getvalue().encode(errors="surrogatepass")


def _as_parquet(frame: Frame) -> bytes:
    """As a file of Parquet; columns that no Parquet file can hold, and odd names, as texts."""
    import pyarrow as pa
    from pyarrow import parquet

    names, columns = [], []
    for name, values in frame:
        names.append(name.encode(errors="replace").decode())
        try:
            columns.append(pa.array(values))
        except (pa.ArrowException, OverflowError, UnicodeError, TypeError):
            columns.append(pa.array([None if each is None else ascii(each) for each in values]))
    file = io.BytesIO()
    parquet.write_table(pa.table(columns, names=names), file)
    return file.getvalue()


@cache
def _whole(kind: str) -> bytes:
    frame = _frame({"who": ["a", "b", "c"] * (ROWS // 3)})
    return _as_csv(frame) if kind == "csv" else _as_parquet(frame)


def _files() -> dict[str, Callable[[], bytes]]:
    """The same table written in odd ways, and what is no table."""
    text = _whole("csv").decode()
    wide = lambda: "\n".join(",".join([str(row % 3) for row in [*range(100_000), *[line]]]) for line in range(20))  # noqa: E731
    encoded = {code: (lambda code=code: text.replace("a", "é").encode(code)) for code in ENCODINGS}
    said = {what: (lambda change=change: change(text).encode()) for what, change in REWRITTEN.items()}
    names = ",".join([*map(str, range(100_000)), "y"])
    return {
        **{f"encoded as {code}": content for code, content in encoded.items()},
        **said,
        "100,000 columns": lambda: f"{names}\n{wide()}\n".encode(),
        "a parquet file": lambda: _whole("parquet"),
        "noise": lambda: np.random.default_rng(0).bytes(5000),
        "a zip archive": lambda: b"PK\x03\x04" + bytes(50),
        "a gzip header": lambda: b"\x1f\x8b\x08" + bytes(50),
        "30 MB of one line": lambda: b"x" * 30_000_000,
        "a million rows": lambda: b"x,y\n" + b"1,0\n2,1\n" * 500_000,
        "3 MB of NUL": lambda: bytes(3_000_000),
    }


def _places() -> dict[str, Prepare]:
    """What may stand where the table should be."""
    return {
        "nothing": lambda _: None,
        "a folder": lambda folder: (folder / "table.csv").mkdir(),
        "a pipe": lambda folder: os.mkfifo(folder / "table.csv"),
        "a link to nowhere": lambda folder: (folder / "table.csv").symlink_to("nowhere"),
        "a link to itself": lambda folder: (folder / "table.csv").symlink_to("table.csv"),
        "a link to /dev/zero": lambda folder: (folder / "table.csv").symlink_to("/dev/zero"),
        "a link to the table": lambda folder: [
            (folder / "whole").write_bytes(_whole("csv")),
            (folder / "table.csv").symlink_to("whole"),
        ],
    }


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
