"""A run folder is one process's at a time, and the others are told whose."""

import os
import socket
from pathlib import Path

import pytest

from fedexp.core.errors import ConfigError
from fedexp.run.folders import is_finished, lock_folder


def refused(folder: Path) -> str:
    with lock_folder(folder), pytest.raises(ConfigError) as told, lock_folder(folder, patience_s=0.0):
        pass
    return str(told.value)


def test_who_has_a_folder_is_told(tmp_path: Path):
    holder = f"process {os.getpid()} on {socket.gethostname()}"
    assert refused(tmp_path) == f"{tmp_path} is being run by {holder}; wait for it, or end it"


def test_a_lock_that_nobody_else_can_read_is_another_process_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def locked(*_: object, **__: object) -> str:
        raise PermissionError("Permission denied")

    monkeypatch.setattr(Path, "read_text", locked)
    assert refused(tmp_path) == f"{tmp_path} is being run by another process; wait for it, or end it"


def test_a_run_is_finished_once_its_summary_can_be_read(tmp_path: Path):
    (tmp_path / "metrics.csv").touch()
    assert not is_finished(tmp_path)
    (tmp_path / "summary.json").write_text("{}")
    assert is_finished(tmp_path)
    (tmp_path / "summary.json").write_text("")
    with pytest.raises(ConfigError, match=r"summary.json cannot be read as JSON: .*; is it damaged\?"):
        is_finished(tmp_path)
    (tmp_path / "summary.json").write_text("{}")
    (tmp_path / "metrics.csv").unlink()
    assert not is_finished(tmp_path)
