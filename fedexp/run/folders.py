"""Run folders: claimed once, used by one process at a time; and the link `outputs/latest` to the newest."""

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

from fedexp.core.errors import ConfigError
from fedexp.files import run_tables, summary_json
from fedexp.files.atomic import display_path, make_parents, remove_leftovers, shell_path
from fedexp.files.locks import file_lock
from fedexp.files.open_folders import FolderGoneError, open_folder, refuse_other_folder
from fedexp.files.untrusted import refuse_special_outputs
from fedexp.files.unwritable import system_reason
from fedexp.process.exits import USAGE_ERROR, CommandExit, name_too_long

if TYPE_CHECKING:
    from omegaconf import DictConfig

OUTPUTS = Path("outputs")
PATIENCE_S = 3.0


def claim(folder: Path, *, dated: bool) -> Path:
    """Makes the folder of a run or a sweep and returns it.

    A name made of the time gets a number if it is taken (TIME, TIME-2, ...); a name given by hand must be free.
    """
    with make_parents(folder):
        if not dated:
            refuse_used(folder)
            refuse_special_outputs(folder)
            folder.mkdir(exist_ok=True)
            return folder
        candidates = chain([folder], (folder.with_name(f"{folder.name}-{number}") for number in count(2)))
        for candidate in candidates:
            with suppress(FileExistsError):
                candidate.mkdir()
                return candidate
    raise AssertionError


@contextmanager
def lock_folder(folder: Path, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Locks a run folder against every other process, on this machine and on others that share it.

    What is written below its path meanwhile goes into this very folder. The lock ends with the last process of the run,
    however it ends; one that is just ending is waited for a little.

    Raises:
        ConfigError: another process has the folder.
        FolderGoneError: the folder is not there.
    """
    lock = folder / ".lock"
    try:
        with open_folder(folder), file_lock(lock, patience_s) as file:
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}")
            file.flush()
            clear(folder)
            yield
    except TimeoutError as error:
        raise ConfigError(f"{display_path(folder)} is being run by {_holder(lock)}; wait for it, or end it") from error


def _holder(lock: Path) -> str:
    with suppress(OSError):  # on Windows nobody reads what another process has locked
        return lock.read_text(encoding="utf-8") or "another process"
    return "another process"


def clear(folder: Path) -> None:
    """Removes the unfinished files of killed processes, except the file that a tracker's process writes and removes."""
    for directory in (folder, folder / ".hydra", folder / "states"):
        remove_leftovers(directory, lambda name: name != "tracker.json")


def refuse_used(folder: Path) -> None:
    """Refuses a folder that already holds a run or a sweep."""
    if kind := _kind(folder):
        raise ConfigError(
            f"{display_path(folder)} already holds a {kind}; use fedexp resume {shell_path(folder)} or another folder"
        )
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{display_path(folder)} must be a folder, but it is a file")


def refuse_folder_of_runs(folder: Path, command: str) -> None:
    """Refuses a folder that holds nothing of its own for this command, but runs in folders below."""
    parents = (Path(parent) for parent, _, _ in os.walk(folder))
    first = next((parent for parent in parents if (parent / "config.json").is_file() or _kind(parent)), folder)
    if first != folder:
        latest = folder / "latest"
        example = shell_path(latest if latest.is_symlink() else first)
        raise ConfigError(
            f"{display_path(folder)} is no run, but holds runs below; name one of them, e.g. {command} {example}"
        )


def refuse_export(folder: Path) -> None:
    """Raises ConfigError where a folder is what `fedexp export` wrote, in which no run was begun."""
    if (folder / "encoder.json").is_file() and not _kind(folder):
        raise ConfigError(
            f"{display_path(folder)} is an exported model and no run; name the folder of the run, or ask the model: "
            f"fedexp predict {shell_path(folder)}"
        )


def _kind(folder: Path) -> str | None:
    """What has begun in a folder; None if nothing has."""
    kinds = {"run": is_run, "sweep": is_sweep, "search": is_search, "contest": is_contest}
    return next((kind for kind, holds in kinds.items() if holds(folder)), None)


def is_run(folder: Path) -> bool:
    """Whether a run has written here."""
    return (folder / "state.pt").exists() or (folder / "metrics.csv").exists()


def claim_from_config(output_config: "DictConfig") -> Path:
    """Claims the folder that a config asks for; under `outputs/` the link `latest` then points to it."""
    from omegaconf import OmegaConf

    dated = "${now:" in str(OmegaConf.to_container(output_config, resolve=False))
    try:
        folder = claim(Path(output_config.dir), dated=dated)
    except OSError as error:
        raise ConfigError(
            name_too_long(error)
            or f"cannot make the folder {output_config.dir}: {system_reason(error)}; give another folder"
        ) from error
    link_latest(folder)
    return folder


@contextmanager
def provisional_folder(output_config: "DictConfig") -> Iterator[Path]:
    """Claims a new folder for a run, and removes it again if the run is refused before it has recorded anything."""
    latest, requested_folder = Path.cwd() / OUTPUTS / "latest", Path(output_config.dir)
    previous_target, existed_before = latest.readlink() if latest.is_symlink() else None, requested_folder.exists()
    folder = claim_from_config(output_config)
    with open_folder(folder):
        try:
            yield folder
        except (ConfigError, CommandExit) as error:
            wrong = isinstance(error, ConfigError) or error.code == USAGE_ERROR
            if wrong and not (existed_before and folder == requested_folder) and not run_tables.has_rounds(folder):
                remove_claimed(folder, latest, previous_target)
            raise


def remove_claimed(folder: Path, latest: Path, previous_target: Path | None) -> None:
    """Removes a claimed folder without a recorded run, and empty folders above it, and restores the link `latest`."""
    with suppress(FolderGoneError):
        refuse_other_folder(folder)
        shutil.rmtree(folder, ignore_errors=True)
    if latest.is_symlink() and not latest.exists():
        latest.unlink()
        if previous_target is not None:
            latest.symlink_to(previous_target, target_is_directory=True)
    with suppress(OSError):  # not empty
        for parent in (folder.parent, folder.parent.parent):
            if parent.absolute().is_relative_to(Path.cwd() / OUTPUTS):
                parent.rmdir()


def is_finished(folder: Path) -> bool:
    """Whether a run has come to its end here, and its numbers are still there.

    Raises:
        ConfigError: its summary is damaged; to run it again would overwrite what may be put back.
    """
    return (folder / "metrics.csv").exists() and summary_json.read(folder) is not None


def is_sweep(folder: Path) -> bool:
    """Whether a sweep has started here."""
    return (folder / "multirun.yaml").exists()


def is_search(folder: Path) -> bool:
    """Whether a search has started here."""
    return (folder / "search.yaml").exists()


def is_contest(folder: Path) -> bool:
    """Whether a contest has started here."""
    return (folder / "contest.yaml").exists()


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
