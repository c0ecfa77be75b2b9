"""A run folder is one process's at a time, and the others are told whose."""

import os
import socket
from pathlib import Path

import pytest

from fedexp.core.errors import ConfigError
from fedexp.run.folders import lock_folder


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
