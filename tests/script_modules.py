"""Scripts that import each other from their own folder, as `python FOLDER/NAME.py` lets them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest


@contextmanager
def imported(folder: Path, *names: str) -> Iterator[list[ModuleType]]:
    """The scripts of a folder as modules, forgotten afterwards: another folder may have scripts of the same names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        try:
            yield [import_module(name) for name in names]
        finally:
            for name in names:
                sys.modules.pop(name, None)
