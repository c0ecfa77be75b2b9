from pathlib import Path

import pytest

from fedexp.core.errors import ConfigError
from fedexp.files import run_tables

WHOLE = b"round,client,loss_after,own\n1,0,0.5,a\n1,3,,b\n2,-1,inf,\n"
NEEDED = ("round", "client")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.csv"


def rounds(path: Path) -> list[str]:
    return [line["round"] for line in run_tables.read_lines(path, NEEDED)]


def test_both_readers_take_what_is_whole(path: Path):
    path.write_bytes(WHOLE + b"3,1,0.")
    assert rounds(path) == ["1", "1", "2"]
    table = run_tables.read_frame(path, NEEDED)
    assert table["client"].tolist() == [0, 3, -1]
    assert table["loss_after"].tolist()[::2] == [0.5, float("inf")]


def test_nothing_is_an_empty_table(path: Path):
    for content in (None, b"", b"roun"):
        if content is not None:
            path.write_bytes(content)
        assert rounds(path) == []
        assert run_tables.read_frame(path, NEEDED).empty


ODD = {
    "a word for a round": (b"2,", b"two,", 2),
    "a fraction of a client": (b"1,3,", b"1,3.5,", 1),
    "no client": (b"1,3,", b"1,,", 1),
    "a word for a number": (b"inf", b"much", 2),
    "a cell too many": (b",b", b",b,c", 1),
    "another encoding": (b",b", b",\xff", 1),
    "a loss beyond all": (b"0.5", b"-1e308", 0),
    "a number beyond all": (b"1,3,", b"1,99999999999999999999,", 1),
    "a client that is true": (b"1,3,", b"1,True,", 1),
}


@pytest.mark.parametrize(("was", "now", "sound"), ODD.values(), ids=ODD)
def test_an_odd_line_ends_the_lines_and_refuses_the_table(path: Path, was: bytes, now: bytes, sound: int):
    path.write_bytes(WHOLE.replace(was, now))
    assert len(rounds(path)) == sound
    with pytest.raises(ConfigError, match=r"t\.csv .*; is it damaged\?$"):
        run_tables.read_frame(path, NEEDED)


@pytest.mark.parametrize("header", [b"client,round", b"round,client,client", b"round", b"\xff", b"\n"])
def test_without_its_columns_it_is_no_such_table(path: Path, header: bytes):
    path.write_bytes(header + b"\n1,1,1\n")
    assert rounds(path) == []


def test_a_missing_column_is_named(path: Path):
    path.write_bytes(b"round,own\n1,2\n")
    with pytest.raises(ConfigError, match="must have a column client; is this the folder of a run"):
        run_tables.read_frame(path, NEEDED)


def test_rounds_are_counted_up_to_the_first_gap():
    for numbers, whole in (([], 0), ([1, 2, 3], 3), ([1, 3], 1), ([2, 3], 0), ([1, 1, 2], 1)):
        assert run_tables.count_consecutive(numbers) == whole


def test_a_column_that_comes_twice_is_refused(path: Path):
    path.write_bytes(b"round,client,loss_after,loss_after\n1,0,0.5,0.6\n")
    assert rounds(path) == []
    with pytest.raises(ConfigError, match=r"t\.csv must have a name of its own .* 2 are named loss_after; rename or"):
        run_tables.read_frame(path, NEEDED)


def test_a_simulated_clock_may_go_as_far_as_a_fleet_says(path: Path):
    path.write_bytes(b"round,sim_s\n1,1e150\n")
    assert [line["sim_s"] for line in run_tables.read_lines(path, ("round",))] == ["1e150"]
    assert run_tables.read_frame(path)["sim_s"].tolist() == [1e150]


def test_the_cell_that_is_wrong_is_named_as_it_stands_there(path: Path):
    path.write_bytes(b"round,participants\n1,10\n2,1000000000000000000000\n")
    with pytest.raises(ConfigError, match="whole numbers in its column participants, got '1000000000000000000000'"):
        run_tables.read_frame(path)


@pytest.mark.parametrize("column", ["global", "inside", "personal", "mean"])
def test_a_score_of_a_client_is_finite(path: Path, column: str):
    path.write_bytes(f"client,metric,{column}\n0,accuracy,inf\n".encode())
    assert list(run_tables.read_lines(path, ("client",))) == []
    with pytest.raises(ConfigError, match=f"must have numbers up to 1e\\+100 in its column {column}, got 'inf'"):
        run_tables.read_frame(path)


@pytest.mark.parametrize("cell", ["inf", "1.5", "-2", "1e300"])
def test_an_accuracy_is_at_most_1(path: Path, cell: str):
    path.write_bytes(b"round,client,test_loss,test_accuracy\n1,0,inf,1.0\n2,0,0.5,nan\n")
    assert len(rounds(path)) == len(run_tables.read_frame(path)) == 2
    path.write_bytes(f"round,client,test_loss,test_accuracy\n1,0,0.5,0.25\n2,0,0.5,{cell}\n".encode())
    assert len(rounds(path)) == 1
    with pytest.raises(ConfigError, match="must have numbers up to 1 in its column test_accuracy, got"):
        run_tables.read_frame(path)
