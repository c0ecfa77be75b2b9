"""Runs one point after another, in this process."""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from fedexp.sweep.launchers.contract import Ends, Launcher, RunPoint


class Basic(Launcher):
    """Runs points as Hydra's own launcher of this name does, but goes on after a point that fails."""

    aloud: ClassVar[bool] = True

    def launch(self, todo: Iterator[Path], run_point: RunPoint) -> Ends:
        for folder in todo:
            yield run_point(folder)
