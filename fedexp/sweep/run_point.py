"""Runs or resumes one point of a sweep, in the process that a launcher chose.

The point's folder holds all that is needed: `config.json` what to run, the tables and states how far it came,
`summary.json` that it is finished. `traceback.txt` says why it failed.
"""

import os
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from fedexp.config.saved_config import read_config
from fedexp.config.trust import NO_TRUST, Trust
from fedexp.files.atomic import display_path, write_atomically
from fedexp.files.open_folders import open_folder
from fedexp.files.url_credentials import without_password
from fedexp.process import logs
from fedexp.process.cpu_cores import SHARE
from fedexp.process.exits import CommandExit, exit_on_error
from fedexp.run import addresses, folders
from fedexp.sweep.launchers.contract import PointEnd

TRACEBACK = "traceback.txt"


def run_point(folder: Path, share: int | None = None, aloud: bool = False, trust: Trust = NO_TRUST) -> PointEnd:
    """Runs or resumes the point of a folder; a finished one is left unchanged.

    With `share` the point has that many cores; without `aloud` it writes only to its log file.

    Raises:
        Stopped: it was interrupted, and the sweep with it.
    """
    start_time = time.perf_counter()
    if folders.is_finished(folder):
        return PointEnd(folder, 0)
    run_folder = Path(display_path(folder))
    try:
        with (
            exit_on_error(run_folder),
            open_folder(folder),
            _keep_traceback(folder),
            shared_cores(share),
            logs.restore_logging(),
        ):
            _execute(run_folder, aloud, trust)
    except CommandExit as stop:
        if stop.is_interrupted:
            raise
        return PointEnd(folder, stop.code, stop.message)
    return PointEnd(folder, 0, seconds=time.perf_counter() - start_time)


def _execute(run_folder: Path, aloud: bool, trust: Trust) -> None:
    with nullcontext() if aloud else _discard_output(), exit_on_error(run_folder):
        logs.log_to(run_folder, console=aloud)
        from fedexp.run.run import complete

        config = read_config(run_folder, trust)
        addresses.demand(config, run_folder, trust)
        complete(config, run_folder)


@contextmanager
def _keep_traceback(folder: Path) -> Iterator[None]:
    """Writes the traceback into the folder if its run fails, not if it is interrupted; removes it after a good end."""
    try:
        yield
    except CommandExit as stop:
        if not stop.is_interrupted and stop.__cause__ is not None:
            with suppress(OSError):  # a full disk, which must not stop the other points
                text = without_password("".join(traceback.format_exception(stop.__cause__)))
                write_atomically(folder / TRACEBACK, text.encode())
        raise
    (folder / TRACEBACK).unlink(missing_ok=True)


@contextmanager
def shared_cores(share: int | None) -> Iterator[None]:
    """Tells this process how many cores it has, while other points of the sweep use the others."""
    before = os.environ.get(SHARE)
    if share is not None:
        os.environ[SHARE] = str(share)
    try:
        yield
    finally:
        if share is not None:
            os.environ.pop(SHARE)
            os.environ.update({SHARE: before} if before is not None else {})


@contextmanager
def _discard_output() -> Iterator[None]:
    """Discards what a point prints: several on one terminal would only disturb each other."""
    streams = sys.stdout, sys.stderr
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        sys.stdout = sys.stderr = nowhere
        try:
            yield
        finally:
            sys.stdout, sys.stderr = streams
