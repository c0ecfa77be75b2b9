"""Rounds on a terminal and in the log file."""

import io
import sys
from pathlib import Path

import pytest

from fedexp.process import logs
from fedexp.run.progress import Progress


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def lived(folder: Path) -> None:
    """Three rounds with a message in between."""
    with logs.restore_logging():
        logs.log_to(folder)
        progress = Progress(3, 0)
        for number in (1, 2, 3):
            progress.round({"round": number, "test_accuracy": number / 4, "test_loss": 1.0})
            if number == 2:
                progress.say("a note")
        progress.close()
        progress.say("the end")


@pytest.mark.parametrize("piped", [False, True])
def test_log_lines_stand_above_the_bar_and_rounds_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piped: bool
):
    out, err = io.StringIO() if piped else Screen(), Screen()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    lived(tmp_path)
    rounds = [f"round {number}/3  accuracy {number / 4:.4f}  loss 1.0000" for number in (1, 2, 3)]
    told = [rounds[0], rounds[1], "a note", rounds[2], "the end"]
    logged = (tmp_path / "fedexp.log").read_text().splitlines()
    assert [line.partition("INFO ")[2] for line in logged] == told
    shown = [line.rpartition("\r")[2].strip() for line in out.getvalue().splitlines()]
    assert [line for line in shown if line] == (told if piped else ["a note", "the end"])
    assert "3/3" in err.getvalue()
    assert "accuracy 0.7500" in err.getvalue()


def test_without_a_terminal_there_are_lines_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    lived(tmp_path)
    told = capsys.readouterr()
    assert told.out.splitlines()[-1] == "the end"
    assert len(told.out.splitlines()) == 5
    assert told.err == ""
