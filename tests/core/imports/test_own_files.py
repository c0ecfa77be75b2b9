"""Own modules are imported again when their files have changed, by themselves or beside them."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

from fedexp.core.imports import own_files
from fedexp.core.imports.importing import import_object


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    before = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def answer(target: str = "parts_to_change:VALUE") -> int:
    own_files.forget_changed()
    return import_object(target, "key")


def test_a_module_is_what_its_file_is(place):
    file = place / "parts_to_change.py"
    file.write_text("VALUE = 1\n")
    assert answer() == 1
    first = sys.modules["parts_to_change"]
    assert answer() == 1
    assert sys.modules["parts_to_change"] is first, "nothing changed"
    file.write_text("VALUE = 2\n")
    assert answer() == 2


def test_so_is_one_that_imports_another_beside_it(place):
    (place / "width_to_change.py").write_text("VALUE = 1\n")
    (place / "parts_to_change.py").write_text("from width_to_change import VALUE\n")
    assert answer() == 1
    (place / "width_to_change.py").write_text("VALUE = 2\n")
    assert answer() == 2


@pytest.mark.parametrize("is_package", [True, False])
def test_so_is_a_module_of_a_folder(place, is_package):
    folder = place / "folder_to_change"
    (folder / "inner").mkdir(parents=True)
    if is_package:
        (folder / "__init__.py").touch()
    (folder / "inner" / "width.py").write_text("VALUE = 1\n")
    (folder / "part.py").write_text("from folder_to_change.inner.width import VALUE\n")
    assert answer("folder_to_change.part.VALUE") == 1
    (folder / "inner" / "width.py").write_text("VALUE = 2\n")
    assert answer("folder_to_change.part.VALUE") == 2
    (folder / "later.py").write_text("VALUE = 3\n")
    assert answer("folder_to_change.later.VALUE") == 3


def test_so_is_one_that_the_user_imported_and_changed_before(place, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)  # Python's cache tells what was imported
    file = place / "parts_to_change.py"
    file.write_text("VALUE = 1\n")
    assert import_module("parts_to_change").VALUE == 1
    file.write_text("VALUE = 20\n")
    assert answer() == 20


def test_what_is_installed_stays():
    import numpy as np

    assert answer("numpy:pi") == np.pi
    assert not own_files._modules_beside("numpy")
