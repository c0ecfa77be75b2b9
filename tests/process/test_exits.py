"""How commands end: what is said where nobody can hear it, and what is raised that is no Exception."""

import io
import sys
from pathlib import Path

import pytest

from fedexp.process.exits import CommandExit, exit_on_error, print_error


def test_nobody_hears_a_complaint_where_stderr_is_closed(monkeypatch: pytest.MonkeyPatch):
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    print_error("no room")
    assert CommandExit(2, "no room").report() == 2


@pytest.mark.parametrize("error", [GeneratorExit, BaseException, SystemExit])
def test_whatever_ends_a_run_is_stopped(tmp_path: Path, error: type[BaseException]):
    with pytest.raises(CommandExit) as stopped, exit_on_error(tmp_path):
        raise error("first")
    assert stopped.value.code == 1
    assert f"{error.__name__}: first" in stopped.value.message


def test_what_is_stopped_stays_as_it_is(tmp_path: Path):
    stop = CommandExit(130, "interrupted")
    with pytest.raises(CommandExit) as stopped, exit_on_error(tmp_path):
        raise stop
    assert stopped.value is stop


def test_a_very_long_word_is_cut_and_a_path_is_not(capsys: pytest.CaptureFixture[str]):
    path = "/".join(["name"] * 100)
    print_error(f"target must name a part, got {'a' * 5000} of {path}")
    assert (
        capsys.readouterr().err == f"fedexp: target must name a part, got {'a' * 80}... (5,000 characters) of {path}\n"
    )


def test_the_signs_behind_a_long_word_stay(capsys: pytest.CaptureFixture[str]):
    print_error(f"got '{'a' * 500}'; use b {'.' * 200_000}")  # and many of them take no time to speak of
    assert capsys.readouterr().err.startswith(f"fedexp: got '{'a' * 79}... (501 characters)'; use b ")
