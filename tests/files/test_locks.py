"""Locks: one process at a time, freed by its death; what is no file of its own is refused."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fedexp.core.errors import ConfigError
from fedexp.files import locks
from fedexp.files.locks import file_lock

HOLDER = """
import sys, time
from pathlib import Path
from fedexp.files.locks import file_lock
with file_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@contextmanager
def holder(lock: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(lock)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_one_process_at_a_time_until_it_dies(tmp_path: Path):
    lock = tmp_path / ".lock"
    with holder(lock) as other:
        with pytest.raises(TimeoutError, match=r"\.lock is held by another process$"), file_lock(lock, patience_s=0.0):
            pass
        other.kill()
        other.wait()
        with file_lock(lock, patience_s=0.0) as file:
            file.write("mine")
    assert lock.read_text() == "mine"


def test_it_is_free_again_after_the_block(tmp_path: Path):
    for _ in range(2):
        with file_lock(tmp_path / ".lock", patience_s=0.0):
            pass


def test_a_link_a_pipe_and_a_folder_are_refused(tmp_path: Path):
    (tmp_path / "mine.txt").touch()
    (tmp_path / "link.lock").symlink_to(tmp_path / "mine.txt")
    os.mkfifo(tmp_path / "pipe.lock")
    (tmp_path / "folder.lock").mkdir()
    for kind in ("link", "pipe", "folder"):
        with pytest.raises(ConfigError, match=f"must be a file of its own, but it is a {kind}; remove it"):
            file_lock(tmp_path / f"{kind}.lock").__enter__()


def test_without_locks_nobody_is_kept_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def nothing(*_: object, **__: object) -> bool:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(locks, "lock_descriptor", nothing)
    with file_lock(tmp_path / ".lock"), file_lock(tmp_path / ".lock"):
        pass
