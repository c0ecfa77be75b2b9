"""Files of users with bytes changed, cut out and put in: every one is read or refused in a line, and nothing warns."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fedexp.core.errors import ConfigError
from fedexp.data import idx
from fedexp.parts.dataset import check_data
from fedexp.parts.dataset.contract import Dataset, Facts
from fedexp.parts.dataset.leaf import Leaf
from fedexp.parts.dataset.npz import Npz
from fedexp.parts.dataset.table import OwnTable
from fedexp.parts.dataset.text import Text
from fedexp.parts.federation.file import File

TRIED = 40
BYTES = (
    b"1e308",
    b"-1",
    b"1e999",
    b"nan",
    b"9" * 400,
    b"\0",
    b"{",
    b"[[[[",
    b'"',
    b",",
    b"\n",
    b"\xff",
    b"0.5",
    b"null",
)
X, Y = np.arange(36, dtype=np.float32).reshape(12, 3), np.arange(12) % 3
ARRAYS: dict[str, Any] = {"x_train": X, "y_train": Y, "x_test": X, "y_test": Y, "subject": Y}
ROWS = pd.DataFrame({"a": np.arange(40) / 7, "b": list("xyzw") * 10, "s": list("uv") * 20, "w": np.arange(40) % 4})
USERS = {"user_data": {"u": {"x": [[1, 2], [3, 4.5]], "y": [0, 1]}, "v": {"x": [[1, 1]], "y": [1]}}}


def read(dataset: Dataset) -> None:
    """All that a run and `fedexp data check` do with a dataset."""
    dataset.require(Path())
    facts = check_data.checked_facts(dataset, Path())
    check_data.refuse(dataset, facts, dataset.load(Path(), 0))
    dataset.verify(Path())


def owners(path: Path) -> None:
    File(path=path, directory=path.parent, column="who").refuse(Facts((1,), 2, 12))


def text_of(frame: pd.DataFrame) -> Callable[[Path], object]:
    return lambda path: frame.to_csv(path, index=False)


KINDS: dict[str, tuple[Callable[[Path], object], Callable[[Path], object]]] = {
    "plain.npz": (lambda path: np.savez(path, **ARRAYS), lambda path: read(Npz(path=path))),
    "packed.npz": (lambda path: np.savez_compressed(path, **ARRAYS), lambda path: read(Npz(path=path))),
    "who.npy": (lambda path: np.save(path, Y), owners),
    "who.csv": (text_of(pd.DataFrame({"id": Y, "who": Y})), owners),
    "table.csv": (text_of(ROWS), lambda path: read(OwnTable(file=path, target="s", client="w"))),
    "table.parquet": (ROWS.to_parquet, lambda path: read(OwnTable(file=path, target="s", client="w"))),
    "train/leaf.json": (
        lambda path: path.write_text(json.dumps(USERS)),
        lambda path: read(Leaf(path=path.parent.parent, name="synthetic")),
    ),
    "lines.txt": (lambda path: path.write_text("how are you\n" * 40), lambda path: read(Text(file=path, length=5))),
    "labels.gz": (
        lambda path: path.write_bytes(gzip.compress(b"\0\0\x08\x01\0\0\0\x08" + bytes(8))),
        lambda path: idx.read(path, (8,), "cure"),
    ),
}


def damaged(raw: bytes, rng: np.random.Generator) -> bytes:
    made = bytearray(raw)
    for _ in range(rng.choice((1, 1, 2, 4))):
        place = int(rng.integers(len(made)))
        end = place + int(rng.choice((0, 1, 3, 8)))
        made[place:end] = (b"", rng.bytes(1), made[:end], BYTES[rng.integers(len(BYTES))])[rng.integers(4)]
    return bytes(made)


@pytest.mark.parametrize("name", KINDS)
def test_damage_is_read_or_refused_in_a_line(tmp_path: Path, name: str):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    write, act = KINDS[name]
    for part in ("train", "test"):
        (tmp_path / part).mkdir()
    (tmp_path / "test" / "leaf.json").write_text(json.dumps(USERS))
    path = tmp_path / name
    write(path)
    act(path)
    raw, rng = path.read_bytes(), np.random.default_rng(list(name.encode()))
    said = [""]
    for _ in range(TRIED):
        path.write_bytes(damaged(raw, rng))
        try:
            act(path)
        except ConfigError as error:
            said.append(str(error))
    assert len(said) > 1
    assert not [line for line in said if "\n" in line]
