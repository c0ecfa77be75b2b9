from pathlib import Path

import pytest

from fedexp.run.tables import METRICS, GrowingCsv, truncate


def table(path: Path, upto: int = 99) -> GrowingCsv:
    return GrowingCsv(path, upto)


def test_lines_are_there_as_soon_as_they_are_appended(tmp_path: Path):
    path = tmp_path / "metrics.csv"
    growing = table(path)
    growing.append([{"round": 1, "test_loss": 0.1, "role.own": 3}], METRICS)
    assert path.read_text().splitlines() == [",".join((*METRICS, "role.own")), "1,0.1" + "," * 12 + ",3"]
    growing.close()


def test_what_does_not_exist_is_an_empty_cell_and_floats_read_back(tmp_path: Path):
    growing = table(tmp_path / "t.csv")
    growing.append(
        [{"round": 1, "a": None, "b": float("nan"), "c": 0.1 + 0.2, "d": float("inf"), "e": -float("inf")}],
        ("round", "a", "b", "c", "d", "e"),
    )
    assert (tmp_path / "t.csv").read_text().splitlines()[1] == "1,,,0.30000000000000004,,"
    assert float("0.30000000000000004") == 0.1 + 0.2
    growing.close()


def test_a_column_cannot_appear_later(tmp_path: Path):
    growing = table(tmp_path / "t.csv")
    growing.append([{"round": 1}], ("round",))
    with pytest.raises(ValueError, match=r"columns \['late'\]"):
        growing.append([{"round": 2, "late": 1}], ("round",))
    growing.close()


@pytest.mark.parametrize(
    ("upto", "tail", "left"),
    [
        (2, b"", 2),
        (9, b"4,1", 3),
        (3, b"4", 3),
        (9, b"x,1\n4,1\n", 3),
        (9, b"4\n", 3),
        (9, b"2,1\n", 3),
        (9, b"4,\xff\n", 3),
        (9, b'4,"1\n', 3),
    ],
)
def test_truncation_keeps_whole_lines_up_to_a_round(tmp_path: Path, upto: int, tail: bytes, left: int):
    path = tmp_path / "t.csv"
    path.write_bytes(b"round,a\n1,5\n2,6\n3,7\n" + tail)
    assert truncate(path, upto) == ("round", "a")
    assert path.read_bytes() == b"round,a\n1,5\n2,6\n3,7\n"[: 8 + 4 * left]


def test_a_line_that_comes_twice_is_cut(tmp_path: Path):
    path = tmp_path / "t.csv"
    for single, left in ((True, b"round,a\n1,5\n2,6\n"), (False, b"round,a\n1,5\n2,6\n2,6\n")):
        path.write_bytes(b"round,a\n1,5\n2,6\n2,6\n")
        truncate(path, 2, single=single)
        assert path.read_bytes() == left


def test_what_precedes_the_first_round_goes_with_it(tmp_path: Path):
    path = tmp_path / "t.csv"
    for upto, left in ((1, b"round,a\n0,5\n1,6\n"), (0, b"")):
        path.write_bytes(b"round,a\n0,5\n1,6\n2,7\n")
        truncate(path, upto)
        assert path.read_bytes() == left


@pytest.mark.parametrize("header", [b"round,a\n", b"\xff\n", b"a,b\n", b"\n"])
def test_a_run_that_begins_again_writes_its_headers_again(tmp_path: Path, header: bytes):
    path = tmp_path / "t.csv"
    path.write_bytes(header + b"1,5\n")
    assert truncate(path, 0) is None
    assert path.read_bytes() == b""


def test_a_cut_header_starts_the_table_anew(tmp_path: Path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"roun")
    assert truncate(path, 5) is None
    assert path.read_bytes() == b""
    assert truncate(tmp_path / "absent.csv", 5) is None
