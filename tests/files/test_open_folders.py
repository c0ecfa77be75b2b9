"""What is written below an opened folder goes into that folder, or nowhere: whatever its path has come to mean."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fedexp.files.atomic import publish, scratch_path, write_atomically
from fedexp.files.locks import file_lock
from fedexp.files.open_folders import FolderGoneError, make_folder, open_folder, refuse_other_file, refuse_other_folder

Tree = Callable[[Path], list[str]]


def lock(path: Path) -> None:
    with file_lock(path):
        pass


WRITERS = (
    lambda folder: write_atomically(folder / "file", b"content"),
    lambda folder: write_atomically(folder / "deep" / "down" / "file", b"content"),
    lambda folder: lock(folder / ".lock"),
    lambda folder: make_folder(folder),
    lambda folder: make_folder(folder / "point"),
)
ACCIDENTS = {
    "removed": lambda folder: folder.rmdir(),
    "renamed": lambda folder: folder.rename(folder.with_name("elsewhere")),
    "remade": lambda folder: (folder.rmdir(), folder.mkdir()),
    "a file": lambda folder: (folder.rmdir(), folder.touch()),
    "the one above renamed": lambda folder: folder.parent.rename(folder.parent.with_name("elsewhere")),
}


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("accident", ACCIDENTS)
def test_nothing_is_written_but_into_the_folder_that_was_opened(
    accident: str, write: Callable[[Path], None], tmp_path: Path, tree: Tree
):
    folder = tmp_path / "above" / "run"
    folder.mkdir(parents=True)
    with open_folder(folder):
        ACCIDENTS[accident](folder)
        before = tree(tmp_path)
        with pytest.raises(FolderGoneError, match="run was removed, renamed or replaced while it was in use"):
            write(folder)
        assert tree(tmp_path) == before


def test_what_was_begun_before_is_not_published_elsewhere(tmp_path: Path):
    folder = tmp_path / "run"
    folder.mkdir()

    def begun() -> None:
        with scratch_path(folder / "file") as part:
            part.write_bytes(b"content")
            folder.rename(tmp_path / "elsewhere")
            publish(part, folder / "file")

    with open_folder(folder), pytest.raises(FolderGoneError):
        begun()
    assert not folder.exists()
    assert not (tmp_path / "elsewhere" / "file").exists()


def test_the_outermost_folder_is_named(tmp_path: Path):
    inner = tmp_path / "sweep" / "0"
    inner.mkdir(parents=True)
    with open_folder(inner.parent), open_folder(inner):
        inner.parent.rename(tmp_path / "elsewhere")
        with pytest.raises(FolderGoneError, match="sweep was removed"):
            refuse_other_folder(inner / "file")


def test_another_working_folder_is_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path)
    with open_folder(Path("run")):
        write_atomically(Path("run/file"), b"content")
        write_atomically(tmp_path / "run" / "file", b"content")
        (tmp_path / "other").mkdir()
        monkeypatch.chdir(tmp_path / "other")
        with pytest.raises(FolderGoneError):
            write_atomically(Path("run/file"), b"content")
    assert not (tmp_path / "other" / "run").exists()


def test_a_folder_may_be_opened_twice_and_must_be_there(tmp_path: Path):
    with open_folder(tmp_path):
        with open_folder(tmp_path):
            pass
        write_atomically(tmp_path / "file", b"content")
    with pytest.raises(FolderGoneError), open_folder(tmp_path / "none"):
        pass


def test_a_file_in_another_s_place_is_another_file(tmp_path: Path):
    path = tmp_path / "table.csv"
    with path.open("ab") as file:
        refuse_other_file(path, file.fileno())
        path.rename(tmp_path / "old.csv")
        path.touch()
        with pytest.raises(FolderGoneError, match=r"table\.csv was removed"):
            refuse_other_file(path, file.fileno())
