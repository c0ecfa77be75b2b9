"""A folder as a stranger may make it: what is put where, and how it must be answered."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from fedexp import cli

Kind = Callable[[Path, Path], None]


def as_link(path: Path, elsewhere: Path) -> None:
    path.symlink_to(elsewhere)


def as_dangling_link(path: Path, elsewhere: Path) -> None:
    path.symlink_to(elsewhere.with_name("not there"))


def as_pipe(path: Path, _: Path) -> None:
    os.mkfifo(path)


def as_folder(path: Path, _: Path) -> None:
    path.mkdir()


KINDS: dict[str, Kind] = {"link": as_link, "dangling": as_dangling_link, "pipe": as_pipe, "folder": as_folder}


def replaced(path: Path, kind: str, elsewhere: Path) -> None:
    """Puts something else in the place of a file or folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    KINDS[kind](path, elsewhere)


def refusal(capsys, *words: str) -> str:
    """What a command says that must refuse in one line."""
    capsys.readouterr()
    assert cli.main(list(words)) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1, said
    return said
