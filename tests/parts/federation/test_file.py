import os
from pathlib import Path

import numpy as np
import pytest

from fedexp.core.errors import ConfigError
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.federation import file
from fedexp.parts.federation.file import File, number_owners

FACTS = Facts(shape=(1,), classes=2, train_size=5)


def shards(federation: File) -> list[list[int]]:
    federation.refuse(FACTS)
    partition = federation.split(np.zeros(5, int), federation.resolve_subjects(None), 2, np.random.default_rng(0))
    assert federation.known_clients() == partition.clients
    return [partition.shard(client).tolist() for client in range(partition.clients)]


def made(folder: Path, text: str, **values: str) -> File:
    (folder / "who.csv").write_text(text)
    return File(path=Path("who.csv"), directory=folder, **values)


def test_owners_become_clients_in_ascending_order():
    assert number_owners(np.array([30, 4, -1, 30]))[0].tolist() == [1, 0, -1, 1]
    assert number_owners(np.array(["b", "", "a", "b"]))[0].tolist() == [1, -1, 0, 1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("client\n12\n3\n12\n3\n3\n", [[1, 3, 4], [0, 2]]),  # 3 before 12: numbers, not texts
        ("client\n12\n-1\n12\n\n3\n", [[4], [0, 2]]),
        ("client\nward\nicu\nward\n\nicu\n", [[1, 4], [0, 2]]),
        ("client\nward\nicu\nward\n-1\nicu\n", [[1, 4], [0, 2]]),
        ("client\nward\nicu\nward\n-1.0\nicu\n", [[1, 4], [0, 2]]),
        ("client\n12.0\n-1.0\n12.0\n\n3.0\n", [[4], [0, 2]]),  # as pandas writes numbers with gaps
        ("client\n1.2e+01\n-1.000e+00\n12.\n-1\n3\n", [[4], [0, 2]]),
        ("client\n007\n7\n007\n7\n-1\n", [[0, 2], [1, 3]]),  # two names
        ("client\n9007199254740993\n9007199254740992\n9007199254740993\n-1\n\n", [[1], [0, 2]]),
        ("client\n1.5\n1.50\n-1\n1.5\n1.50\n", [[0, 3], [1, 4]]),
        ("\ufeffclient\r\n1\r\n0\r\n0\r\n0\r\n0\r\n", [[1, 2, 3, 4], [0]]),
    ],
)
def test_a_table_with_one_column(tmp_path: Path, text: str, expected: list[list[int]]):
    assert shards(made(tmp_path, text)) == expected


def test_the_file_is_read_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    reads: list[Path] = []
    plain = file._read_column
    monkeypatch.setattr(file, "_read_column", lambda path, column: reads.append(path) or plain(path, column))
    federation = made(tmp_path, "client\n1\n0\n0\n0\n0\n")
    shards(federation)
    assert len(reads) == 1
    os.utime(tmp_path / "who.csv", ns=(1, 1))
    assert federation.known_clients() == 2
    assert len(reads) == 2


def test_a_column_of_several(tmp_path: Path):
    text = 'id,hospital\n0,"St. Mary, east"\n1,b\n2,b\n3,b\n4,"St. Mary, east"\n'
    assert shards(made(tmp_path, text, column="hospital")) == [[0, 4], [1, 2, 3]]


def test_a_vector(tmp_path: Path):
    np.save(tmp_path / "who.npy", np.array([2, 0, -1, 2, 0]))
    assert shards(File(path=tmp_path / "who.npy", directory=tmp_path)) == [[1, 4], [0, 3]]
    for kind in (np.float64, np.float16):
        np.save(tmp_path / "who.npy", np.array([2, 0, np.nan, 2, 0], dtype=kind))
        assert shards(File(path=tmp_path / "who.npy", directory=tmp_path)) == [[1, 4], [0, 3]]


def test_examples_that_the_server_took_are_nobodys(tmp_path: Path):
    federation = made(tmp_path, "client\n0\n1\n0\n1\n2\n")
    whose = federation.resolve_subjects(None)
    partition = federation.split(np.zeros(4, int), whose[:4], 2, np.random.default_rng(0))
    assert partition.sizes.tolist() == [2, 2, 0]


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("a,b\n1,2\n", None, "federation.column must name one of the columns a, b"),
        ("client,x\n1,2\n", "clients", "federation.column=clients is not in .*; did you mean client"),
        ("client\n1\n1\n", None, "an owner for each of the 5 training examples, in their order, but it has 2"),
        ("a,b\n1,2\n3\n", "a", r"line 3 of .* must have 2 cells like its header, got \['3'\]"),
        ("client\n-1\n-1\n", None, "names none"),
        ("client\n-2\n1\n", None, "from 0, or -1 for nobody, got -2"),
        ("", None, "must have a header and a line for each training example, but is empty"),
        ('client\n"1\n', None, "cannot be read as a CSV file"),
        ("who,who\n1,2\n", "who", "several columns named who"),
        ("who, who\n1,2\n", "who", "several columns named who"),
        ("client\na\nb\0\n", None, "line 3 of .* holds a NUL character"),
        ('a,b\n"x\ny\nz",1\n3\n', "a", r"line 5 of .* must have 2 cells like its header, got \['3'\]"),
        ('"a\nb",c\n"x\r\ny",1\n"\n\0",2\n', "a\nb", "line 5 of .* holds a NUL character"),  # it begins there
        ("id;client\n1;2\n", None, "who.csv must have commas between its cells, got semicolons; save it with commas"),
        ("id\tclient\n1\t2\n", "client", "commas between its cells, got tabs"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_before_loading(tmp_path: Path, text: str, column: str | None, words: str):
    (tmp_path / "who.csv").write_text(text)
    with pytest.raises(ConfigError, match=words):
        File(path=Path("who.csv"), directory=tmp_path, column=column).refuse(FACTS)


@pytest.mark.parametrize("array", [np.zeros((5, 1), int), np.full(5, 0.5), np.full(5, np.inf), np.array([{}] * 5)])
def test_a_vector_that_does_not_fit_is_refused_and_nothing_in_it_is_executed(tmp_path: Path, array: np.ndarray):
    np.save(tmp_path / "who.npy", array, allow_pickle=True)
    with pytest.raises(ConfigError, match=r"who.npy (must hold a vector of whole numbers|cannot be read)"):
        File(path=tmp_path / "who.npy", directory=tmp_path).refuse(FACTS)


def test_a_header_that_promises_more_than_the_file_holds_is_refused(tmp_path: Path):
    np.save(tmp_path / "who.npy", np.zeros(5, int))
    raw = (tmp_path / "who.npy").read_bytes()
    for shape in (b"(10**12,)", b"(99999999999999,)", b"(-5,)", b"((((((((5,", b"([5],)"):
        (tmp_path / "who.npy").write_bytes(raw.replace(b"(5,), }" + b" " * 20, (shape + b", }").ljust(27)))
        with pytest.raises(ConfigError, match=r"who.npy cannot be read as a .npy file") as caught:
            File(path=tmp_path / "who.npy", directory=tmp_path).refuse(FACTS)
        assert "\n" not in str(caught.value)


def test_an_absent_file_is_named(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"no who.csv here or in "):
        File(path=Path("who.csv"), directory=tmp_path).refuse(FACTS)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_a_pipe_is_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "who.csv")
    with pytest.raises(
        ConfigError, match=r"federation.path must be a .csv or .npy file, but .*who.csv is a folder, a pipe"
    ):
        File(path=Path("who.csv"), directory=tmp_path).refuse(FACTS)
