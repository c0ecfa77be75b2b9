"""Takes one point of a sweep from its present state to its end, in the process that got it.

The point's folder holds all that is needed: `.hydra/config.yaml` what to run, the tables and states how far it came,
`summary.json` that it is finished. `traceback.txt` says why it failed.
"""

import os
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fedexp.config.compose import read_config
from fedexp.config.trust import NOBODY, Trust
from fedexp.core import logs
from fedexp.core.cpu_cores import SHARE
from fedexp.core.exits import Stopped, ending
from fedexp.core.files import shown, write_atomically
from fedexp.core.passwords import without_password
from fedexp.run import addresses, folders
from fedexp.sweep.launchers.contract import PointEnd

if TYPE_CHECKING:
    from fedexp.simulation.company import Company

TRACEBACK = "traceback.txt"


def live(
    folder: Path,
    share: int | None = None,
    aloud: bool = False,
    trust: Trust = NOBODY,
    company: "Company | None" = None,
) -> PointEnd:
    """Runs or resumes the point; a finished one is left alone.

    With `share` the point has that many cores; without `aloud` it writes only to its log file. `company` is what it
    shares with other points of this process.

    Raises:
        Stopped: it was interrupted, and the sweep with it.
    """
    begun = time.perf_counter()
    if folders.is_finished(folder):
        return PointEnd(folder, 0)
    place = Path(shown(folder))
    try:
        with shared_cores(share), logs.kept(), nullcontext() if aloud else _silence(), ending(place):
            logs.log_to(place, console=aloud)
            from fedexp.run.run import complete

            config = read_config(place, trust)
            addresses.demand(config, place, trust)
            (complete if company is None else partial(complete, company=company))(config, place)
    except Stopped as stop:
        if stop.interrupted:
            raise
        cause = stop.__cause__
        if cause is not None:
            with suppress(OSError):  # a full disk, which must not stop the other points
                told = without_password("".join(traceback.format_exception(cause)))
                write_atomically(folder / TRACEBACK, told.encode())
        return PointEnd(folder, stop.code, stop.message)
    (folder / TRACEBACK).unlink(missing_ok=True)
    return PointEnd(folder, 0, seconds=time.perf_counter() - begun)


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
def _silence() -> Iterator[None]:
    """Discards what points print: several on one terminal would only disturb each other."""
    said = sys.stdout, sys.stderr
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        sys.stdout = sys.stderr = nowhere
        try:
            yield
        finally:
            sys.stdout, sys.stderr = said
