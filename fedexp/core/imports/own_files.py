"""Modules of one's own as their files are now: in a notebook they change between two runs of one process.

A module that was imported stays what it was, whatever becomes of its file, but a run folder keeps a digest of the file.
So before a run those modules are forgotten whose files, or files beside them that were imported too, have changed.
"""

import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module, invalidate_caches
from importlib.util import source_hash
from pathlib import Path
from types import ModuleType

_PYC_HEADER = slice(8, 16)  # time and size of the source from which Python compiled a module, 4 bytes each
INSTALLED = {"site-packages", "dist-packages"}  # folders of what is no module of one's own

_hashes: dict[str, bytes] = {}  # of the source of each module, as it was when it was imported


def import_own(name: str) -> ModuleType:
    """Imports a module of one's own as its file is now, and notes the sources of what lies in its folder."""
    package = name.partition(".")[0]
    _forget_stale(package)
    module = import_module(name)
    for loaded, file in _modules_beside(package).items():
        if loaded not in _hashes:
            with suppress(OSError):
                _hashes[loaded] = source_hash(file.read_bytes())
    return module


def forget_changed() -> None:
    """Forgets the imported modules of all packages and folders in which one has changed: they are imported again."""
    for changed in {name.partition(".")[0] for name in _hashes if _has_changed(name)}:
        _forget([*_modules_beside(changed), changed])


def _forget_stale(package: str) -> None:
    """Forgets a module or package that the user imported and changed since, as far as Python's cache of it tells."""
    names = [name for name in _modules_beside(package) if name.partition(".")[0] == package]
    if not any(name in _hashes for name in names) and any(map(_differs_from_cache, names)):
        _forget(names)


def _forget(names: Iterable[str]) -> None:
    for name in names:
        sys.modules.pop(name, None)
        _hashes.pop(name, None)
    invalidate_caches()


def _has_changed(name: str) -> bool:
    file = _file(sys.modules.get(name))
    try:
        return file is None or source_hash(file.read_bytes()) != _hashes[name]
    except OSError:
        return True


def _differs_from_cache(name: str) -> bool:
    module = sys.modules[name]
    file, cache = _file(module), getattr(module, "__cached__", None)
    if file is None or cache is None:
        return False
    with suppress(OSError):
        source, header = file.stat(), Path(cache).read_bytes()[_PYC_HEADER]
        expected = (int(source.st_mtime) & 0xFFFFFFFF, source.st_size & 0xFFFFFFFF)
        return header != b"".join(number.to_bytes(4, "little") for number in expected)
    return False


def _modules_beside(package: str) -> dict[str, Path]:
    """The imported modules of a package, or those in the folder of a module; none of what is installed."""
    module = sys.modules.get(package)
    root = _file(module)
    if root is None or INSTALLED & set(root.parts):
        return {}
    is_package = hasattr(module, "__path__")
    files = {name: _file(loaded) for name, loaded in list(sys.modules.items()) if name != "__main__"}
    return {
        name: file
        for name, file in files.items()
        if file is not None and (file.is_relative_to(root.parent) if is_package else file.parent == root.parent)
    }


def _file(module: ModuleType | None) -> Path | None:
    """The source of a module, of a package without `__init__.py` a file that is not there but in its folder."""
    content = getattr(module, "__dict__", {})  # a lazy module must not import anything now
    file, folders = content.get("__file__"), content.get("__path__")
    if isinstance(file, str):
        return Path(file) if file.endswith(".py") else None
    with suppress(TypeError):
        first = next((folder for folder in folders or () if isinstance(folder, str)), None)
        return None if first is None else Path(first) / "__init__.py"
    return None
