"""Run folders: claimed once, used by one process at a time; and the link `outputs/latest` to the newest."""

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from fedexp.core.errors import ConfigError
from fedexp.core.exits import ASKED_WRONGLY, Stopped, name_too_long
from fedexp.core.files import new_parents, remove_leftovers, shown, typed
from fedexp.core.locks import locked
from fedexp.core.open_folders import FolderGoneError, open_folder, refuse_other_folder
from fedexp.core.own_files import refuse_taken

if TYPE_CHECKING:
    from omegaconf import DictConfig

OUTPUTS = Path("outputs")
PATIENCE_S = 3.0


def claim(folder: Path, *, dated: bool) -> Path:
    """Makes the folder of a run or a sweep and returns it.

    A name made of the time gets a number if it is taken (TIME, TIME-2, ...); a name given by hand must be free.
    """
    with new_parents(folder):
        return _claim(folder, dated)


def _claim(folder: Path, dated: bool) -> Path:
    if not dated:
        refuse_used(folder)
        refuse_taken(folder)
        folder.mkdir(exist_ok=True)
        return folder
    for attempt in count(1):
        candidate = folder if attempt == 1 else folder.with_name(f"{folder.name}-{attempt}")
        try:
            candidate.mkdir()
        except FileExistsError:
            continue
        return candidate
    raise AssertionError


@contextmanager
def held(folder: Path, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Locks a run folder against every other process, on this machine and on others that share it.

    What is written below its path meanwhile goes into this very folder. The lock ends with the last process of the run,
    however it ends; one that is just ending is waited for a little.

    Raises:
        ConfigError: another process has the folder.
        FolderGoneError: the folder is not there.
    """
    lock = folder / ".lock"
    try:
        with open_folder(folder), locked(lock, patience_s) as file:
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}")
            file.flush()
            clear(folder)
            yield
    except TimeoutError as error:
        raise ConfigError(f"{shown(folder)} is being run by {_holder(lock)}; wait for it, or end it") from error


def _holder(lock: Path) -> str:
    with suppress(OSError):  # on Windows nobody reads what another process has locked
        return lock.read_text(encoding="utf-8") or "another process"
    return "another process"


def clear(folder: Path) -> None:
    """Removes the unfinished files of killed processes, except the file that a tracker's process writes and removes."""
    for place in (folder, folder / ".hydra", folder / "states"):
        remove_leftovers(place, lambda name: name != "tracker.json")


def refuse_used(folder: Path) -> None:
    """Refuses a folder that already holds a run or a sweep."""
    if is_run(folder):
        raise ConfigError(f"{shown(folder)} already holds a run; use fedexp resume {typed(folder)} or another folder")
    if is_sweep(folder) or is_search(folder):
        kind = "sweep" if is_sweep(folder) else "search"
        raise ConfigError(
            f"{shown(folder)} already holds a {kind}; use fedexp resume {typed(folder)} or another folder"
        )
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{shown(folder)} must be a folder, but it is a file")


def is_run(folder: Path) -> bool:
    """Whether a run has written here."""
    return (folder / "state.pt").exists() or ((folder / "metrics.csv").exists() and not _cut_off(folder))


def _cut_off(folder: Path) -> bool:
    """Whether the process died before it wrote the config; such a folder has no round, so the run may begin again."""
    config = folder / ".hydra" / "config.yaml"
    return config.parent.is_dir() and not (config.exists() and config.stat().st_size) and not _size(folder)


def has_rounds(folder: Path) -> bool:
    """Whether a round of a run is recorded here."""
    return (folder / "state.pt").exists() or _size(folder) > 0


def _size(folder: Path) -> int:
    table = folder / "metrics.csv"
    return table.stat().st_size if table.exists() else 0


def claimed(place: "DictConfig") -> Path:
    """Claims the folder that a config asks for; under `outputs/` the link `latest` then points to it."""
    from omegaconf import OmegaConf

    dated = "${now:" in str(OmegaConf.to_container(place, resolve=False))
    try:
        folder = claim(Path(place.dir), dated=dated)
    except OSError as error:
        raise ConfigError(name_too_long(error) or f"cannot make the folder {place.dir}: {error.strerror}") from error
    link_latest(folder)
    return folder


@contextmanager
def lent(place: "DictConfig") -> Iterator[Path]:
    """Claims a new folder for a run, and removes it again if the run is refused before it has recorded anything."""
    latest, asked = Path.cwd() / OUTPUTS / "latest", Path(place.dir)
    before, there = latest.readlink() if latest.is_symlink() else None, asked.exists()
    folder = claimed(place)
    with open_folder(folder):
        try:
            yield folder
        except (ConfigError, Stopped) as error:
            wrong = isinstance(error, ConfigError) or error.code == ASKED_WRONGLY
            if wrong and not (there and folder == asked) and not has_rounds(folder):
                give_back(folder, latest, before)
            raise


def give_back(folder: Path, latest: Path, before: Path | None) -> None:
    """Removes a claimed folder without a recorded run, and empty folders above it, and restores the link `latest`."""
    with suppress(FolderGoneError):
        refuse_other_folder(folder)
        shutil.rmtree(folder, ignore_errors=True)
    if latest.is_symlink() and not latest.exists():
        latest.unlink()
        if before is not None:
            latest.symlink_to(before, target_is_directory=True)
    with suppress(OSError):  # not empty
        for parent in (folder.parent, folder.parent.parent):
            if parent.absolute().is_relative_to(Path.cwd() / OUTPUTS):
                parent.rmdir()


def is_finished(folder: Path) -> bool:
    """Whether a run has come to its end here."""
    return (folder / "summary.json").exists()


def is_sweep(folder: Path) -> bool:
    """Whether a sweep has started here."""
    return (folder / "multirun.yaml").exists()


def is_search(folder: Path) -> bool:
    """Whether a search has started here."""
    return (folder / "search.yaml").exists()


def link_latest(folder: Path) -> None:
    """Points `outputs/latest` to a folder under `outputs/`; the link is replaced in one step, so it is always there."""
    outputs = Path.cwd() / OUTPUTS
    if not folder.absolute().is_relative_to(outputs):
        return
    link = outputs / "latest"
    temporary = outputs / f".latest-{os.getpid()}"
    try:
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(folder.absolute().relative_to(outputs), target_is_directory=True)
        temporary.replace(link)
    except OSError:  # no links on this file system, or a folder of that name: the run goes on without
        temporary.unlink(missing_ok=True)
