"""A file under its own name is whole: old or new, never half, and what failed leaves nothing behind."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fedexp.files.atomic import atomic_path, publish, scratch_path, shell_path, write_atomically

Tree = Callable[[Path], list[str]]


def test_what_fails_in_the_making_leaves_nothing(tmp_path: Path, tree: Tree):
    def half():
        with scratch_path(tmp_path / "new" / "deep" / "file") as part:
            part.write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half()
    assert tree(tmp_path) == []


def test_publishing_replaces_the_old_file(tmp_path: Path, tree: Tree):
    target = tmp_path / "file"
    target.write_bytes(b"old")
    with scratch_path(target) as part:
        part.write_bytes(b"new")
        publish(part, target)
    assert target.read_bytes() == b"new"
    assert tree(tmp_path) == ["file"]


def test_of_a_folder_in_the_making_only_what_was_published_stays(tmp_path: Path, tree: Tree):
    with scratch_path(tmp_path / "folder") as workshop:
        workshop.mkdir()
        (workshop / "archive").write_bytes(b"archive")
        (workshop / "one").write_bytes(b"one")
        publish(workshop / "one", tmp_path / "one")
    assert tree(tmp_path) == ["one"]


def test_a_replacement_shows_when_the_block_has_ended(tmp_path: Path, tree: Tree):
    target = tmp_path / "file"
    target.write_bytes(b"old")
    with atomic_path(target) as part:
        part.write_bytes(b"new")
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new"
    assert tree(tmp_path) == ["file"]


def test_a_replacement_that_fails_keeps_the_old_file(tmp_path: Path, tree: Tree):
    target = tmp_path / "file"
    target.write_bytes(b"old")

    def half():
        with atomic_path(target) as part:
            part.write_bytes(b"half")
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        half()
    assert target.read_bytes() == b"old"
    assert tree(tmp_path) == ["file"]


def test_two_at_once_do_not_share_a_name(tmp_path: Path, tree: Tree):
    target = tmp_path / "file"
    with atomic_path(target) as one:
        one.write_bytes(b"one")
        with atomic_path(target) as other:
            other.write_bytes(b"other")
        assert target.read_bytes() == b"other"
    assert target.read_bytes() == b"one"
    assert tree(tmp_path) == ["file"]


def test_a_small_file_makes_its_folder(tmp_path: Path, tree: Tree):
    write_atomically(tmp_path / "new" / "file", b"content")
    assert (tmp_path / "new" / "file").read_bytes() == b"content"
    assert tree(tmp_path) == ["new", "new/file"]


def test_a_path_in_a_command_is_one_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert shell_path(tmp_path / "a b" / "$x") == "'a b/$x'"
    assert shell_path(Path("outputs/latest")) == "outputs/latest"
