"""What is sent, by hand."""

from pathlib import Path

import pytest

from fedexp.parts.tracker import lines
from fedexp.parts.tracker.lines import Line

TABLE = b"round,test_loss,note,host_s\n1,0.5,a,1.0\n2,,b,2.0\n3,0.25,c,3.0\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "metrics.csv"
    path.write_bytes(TABLE)
    return path


def test_rounds_beyond_the_last_one_without_what_is_no_number(table: Path):
    found, position = lines.rounds_after(table, 1)
    assert found == [
        Line(2, {"round": 2.0, "host_s": 2.0}),
        Line(3, {"round": 3.0, "test_loss": 0.25, "host_s": 3.0}),
    ]
    assert position == len(TABLE)


def test_a_line_in_the_making_waits(table: Path):
    _, position = lines.rounds_after(table, 0)
    with table.open("ab") as file:
        file.write(b"4,0.1")
    assert lines.rounds_after(table, 3, position) == ([], position)
    with table.open("ab") as file:
        file.write(b"25,d,4.0\n")
    found, _ = lines.rounds_after(table, 3, position)
    assert found == [Line(4, {"round": 4.0, "test_loss": 0.125, "host_s": 4.0})]


@pytest.mark.parametrize("content", [None, b"", b"round,test_l", b"round,test_loss\n"])
def test_no_lines_yet(tmp_path: Path, content: bytes | None):
    if content is not None:
        (tmp_path / "metrics.csv").write_bytes(content)
    assert lines.rounds_after(tmp_path / "metrics.csv", 0)[0] == []


def test_numbers_only():
    cells = {"a": "1.5", "b": "", "c": "nan", "d": "inf", "e": "text", "f": None, "g": True, "h": 2, "i": [1]}
    assert lines.finite_numbers(cells) == {"a": 1.5, "h": 2.0}


def test_the_summary(tmp_path: Path):
    assert lines.summary(tmp_path, 3) is None
    (tmp_path / "summary.json").write_text('{"final_accuracy": 0.5, "roa": {"0.8": 2, "0.9": null}, "device": "CPU"}')
    assert lines.summary(tmp_path, 3) == Line(3, {"summary/final_accuracy": 0.5, "summary/roa.0.8": 2.0})


def test_parameters_are_the_config_by_dotted_keys():
    config = {"_target_": "x", "seed": 1, "model": {"_target_": "y", "widths": [3, 4]}, "tracker": {"uri": "secret"}}
    assert lines.parameters(config) == {"seed": 1, "model.widths": [3, 4]}


def test_texts_are_cut():
    assert lines.text("abcdefgh", 6) == "abc..."
    assert lines.text([3, 4], 6) == "[3, 4]"
    assert lines.text(None, 6) == "null"


def test_names():
    assert lines.sanitise_name("RoA@0.8") == "RoA_0.8"
    assert lines.sanitise_name("summary/toa.0.8 é") == "summary/toa.0.8 _"


def test_batches_are_whole_rounds():
    rows = [Line(number, dict.fromkeys("abc", 1.0)) for number in range(1, 6)]
    assert [[row.round for row in batch] for batch in lines.batches(rows, 7)] == [[1, 2], [3, 4], [5]]
    assert [[row.round for row in batch] for batch in lines.batches(rows, 1)] == [[1], [2], [3], [4], [5]]
    assert list(lines.batches([], 7)) == []
