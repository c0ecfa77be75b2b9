from pathlib import Path

import numpy as np
import pytest

from fedexp.core.errors import ConfigError
from fedexp.data import npy_header
from fedexp.data.store import cache_dir, data_root, find_user_file, load_or_make


def test_folders_come_from_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("FEDEXP_CACHE", str(tmp_path))
    monkeypatch.delenv("FEDEXP_DATA", raising=False)
    assert cache_dir() == tmp_path
    assert data_root() == tmp_path / "data"
    monkeypatch.setenv("FEDEXP_DATA", "/somewhere")
    assert str(data_root()) == "/somewhere"


def test_default_cache_is_the_users(monkeypatch, tmp_path):
    monkeypatch.delenv("FEDEXP_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir() == tmp_path / ".cache" / "fedexp"


def counting():
    calls = []

    def make():
        calls.append(1)
        return {"x": np.arange(1000.0)}

    return calls, make


@pytest.mark.usefixtures("own_cache")
def test_cache_is_made_once():
    calls, make = counting()
    for _ in range(3):
        assert load_or_make("name", make)["x"].tolist() == list(range(1000))
    assert len(calls) == 1


@pytest.mark.parametrize("where", ["begin", "middle", "end", "cut", "empty"])
def test_damaged_cache_is_made_again(own_cache, where):
    calls, make = counting()
    load_or_make("name", make)
    (path,) = own_cache.rglob("*.npz")
    raw = bytearray(path.read_bytes())
    place = {"begin": 1, "middle": len(raw) // 2, "end": len(raw) - 20}.get(where)
    if place is None:
        raw = raw[: len(raw) // 2 if where == "cut" else 0]
    else:
        raw[place] ^= 255
    path.write_bytes(raw)
    assert load_or_make("name", make)["x"].tolist() == list(range(1000))
    assert load_or_make("name", make)["x"].tolist() == list(range(1000))
    assert len(calls) == 2


def test_cache_that_cannot_be_written_is_no_error(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("a file where a folder is needed")
    monkeypatch.setenv("FEDEXP_CACHE", str(tmp_path / "file"))
    calls, make = counting()
    load_or_make("name", make)
    load_or_make("name", make)
    assert len(calls) == 2


def test_large_arrays_stay_in_the_cache_and_damage_is_found(own_cache, monkeypatch):
    monkeypatch.setattr(npy_header, "LARGE", 4096)
    calls, make = counting()
    for _ in range(2):
        found = load_or_make("name", make)["x"]
        assert isinstance(found, np.memmap)
        assert found.tolist() == list(range(1000))
    assert len(calls) == 1
    (path,) = own_cache.rglob("*.npz")
    raw = bytearray(path.read_bytes())
    raw[5000] ^= 255
    path.write_bytes(raw)
    assert load_or_make("name", make)["x"].tolist() == list(range(1000))
    assert len(calls) == 2


def test_own_files_are_looked_up_here_then_in_the_data_root(tmp_path, monkeypatch):
    (tmp_path / "root").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "root" / "a.csv").write_text("root")

    def found(name):
        return find_user_file(Path(name), tmp_path / "root", "dataset.file", ".csv")

    assert found("a.csv").read_text() == "root"
    (tmp_path / "a.csv").write_text("here")
    assert found("a.csv").read_text() == "here"
    with pytest.raises(ConfigError, match=r"dataset.file must be a .csv file, but there is no ~nobody-here/x here"):
        found("~nobody-here/x")
    with pytest.raises(ConfigError, match=r"there is no x{300}"):
        found("x" * 300)
    with pytest.raises(ConfigError, match=r"but root is a folder, a pipe, or a link that leads nowhere"):
        found("root")


def test_a_mistyped_file_is_told_the_nearest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").touch()
    (tmp_path / "writers").mkdir()
    for typed, nearest in (("rows.cvs", "rows.csv"), ("writer", "writers")):
        with pytest.raises(ConfigError, match=f"there is no {typed} here or in .*; did you mean {nearest}"):
            find_user_file(Path(typed), tmp_path / "data", "dataset.file", "text")
    with pytest.raises(ConfigError, match=r"or in [^;]*; give its path$"):
        find_user_file(Path("quite/another"), tmp_path / "data", "dataset.file", "text")
