"""The contract of launchers: they execute points, given by folders, and yield how each ended. Basic is the default."""

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from fedexp.core.errors import ConfigError
from fedexp.core.part import Part
from fedexp.process.exits import FAILURE

ATTEMPTS = 2  # of a point whose process dies


@dataclass(frozen=True)
class PointEnd:
    """How a point ended: code 0 and its seconds, or an exit code and a message."""

    folder: Path
    code: int
    message: str = ""
    seconds: float = 0.0


RunPoint = Callable[[Path], PointEnd]  # runs the point of a folder to its end
Ends = Generator[PointEnd, None, None]


class Launcher(Part):
    """Executes points, given by their folders; configured under `hydra.launcher`."""

    aloud: ClassVar[bool] = False  # whether points write on the console, where a bar shows their rounds

    def refuse(self) -> None:
        """Raises ConfigError where this launcher cannot work."""

    def launch(self, todo: Iterator[Path], run_point: RunPoint) -> Ends:
        """Yields the outcome of every point of `todo`, in any order; one that fails does not keep the others.

        `todo` prepares a point's folder when it is asked for the next one. `run_point` can be sent to another process.
        """
        raise NotImplementedError


class Basic(Launcher):
    """Runs one point after another in this process, as Hydra's own launcher does, but goes on after one that fails."""

    aloud: ClassVar[bool] = True

    def launch(self, todo: Iterator[Path], run_point: RunPoint) -> Ends:
        for folder in todo:
            yield run_point(folder)


def after_death(running: Sequence[Path], deaths: Counter[Path]) -> tuple[list[Path], list[PointEnd]]:
    """After a process died: its points to run again, and the ends of those whose processes died too often.

    Their deaths are counted in `deaths`.
    """
    deaths.update(running)
    killed = [folder for folder in running if deaths[folder] >= ATTEMPTS]
    ends = [PointEnd(folder, FAILURE, "its process was killed (out of memory?)") for folder in killed]
    return [folder for folder in running if folder not in killed], ends


def import_optional(package: str, extra: str, feature: str) -> Any:
    """Imports an optional package.

    Raises:
        ConfigError: it is not installed; says which extra brings it.
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise ConfigError(f"{feature} needs {package}; pip install 'fedexp[{extra}]'") from error
