"""Runs or resumes points by a launcher, each in the process that the launcher chose.

The point's folder holds all that is needed: `config.json` what to run, the tables and states how far it came,
`summary.json` that it is finished. `traceback.txt` says why it failed.
"""

import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext, redirect_stderr, redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from fedexp.config.saved_config import read_config
from fedexp.config.trust import NO_TRUST, Trust
from fedexp.files.atomic import display_path, write_atomically
from fedexp.files.failure import TRACEBACK
from fedexp.files.open_folders import open_folder
from fedexp.files.url_credentials import without_password
from fedexp.process import logs
from fedexp.process.cpu_cores import SHARE
from fedexp.process.exits import CommandExit, exit_on_error
from fedexp.run import addresses, folders
from fedexp.sweep.launchers.contract import Launcher, PointEnd

P = TypeVar("P")


def run_points(
    points: Iterable[P], prepare: Callable[[P], Path | None], launcher: Launcher, aloud: bool, trust: Trust
) -> Iterator[tuple[P, PointEnd]]:
    """Yields every point with its end, in any order.

    `prepare` makes the folder of a point when the launcher asks for the next one; None if the point is not to be run.
    """
    running: dict[Path, P] = {}

    def prepared_folders() -> Iterator[Path]:
        for point in points:
            if (folder := prepare(point)) is not None:
                running[folder] = point
                yield folder

    run = partial(run_point, share=None if launcher.aloud else 1, aloud=aloud, trust=trust)
    with closing(launcher.launch(prepared_folders(), run)) as ends:
        for end in ends:
            yield running.pop(end.folder), end


def run_point(folder: Path, share: int | None = None, aloud: bool = False, trust: Trust = NO_TRUST) -> PointEnd:
    """Runs or resumes the point of a folder; a finished one is left unchanged.

    With `share` the point has that many cores; without `aloud` it writes only to its log file.

    Raises:
        Stopped: it was interrupted, and the sweep with it.
    """
    start_time = time.perf_counter()
    run_folder = Path(display_path(folder))
    try:
        with exit_on_error(run_folder):
            if folders.is_finished(folder):
                return PointEnd(folder, 0)
            with open_folder(folder), _keep_traceback(folder), shared_cores(share), logs.restore_logging():
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
        addresses.refuse_unknown(config, run_folder, trust)
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
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        yield
