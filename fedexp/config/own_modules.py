"""Digests of the modules of one's own that a config names, so that a run folder tells whether they have changed since.

A digest covers the file of a module, those of the packages that it is in, and the files beside them that these import.
What is installed does not count, nor fedexp itself: the version says what it is. Parts that change no result, such as
trackers, may change.
"""

import ast
import hashlib
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from fedexp.config import roles
from fedexp.config.trust import OURS, Trust, import_locations, named_modules
from fedexp.core.imports.own_files import INSTALLED
from fedexp.files.atomic import display_path

_START = "__init__.py"
_PYTHON = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}


def module_digests(config: Mapping[str, Any]) -> dict[str, str]:
    """The digest of each module of one's own that a config names, by its name; imports nothing."""
    free, digests = roles.role_names(changes_results=False), {}
    acting = {key: node for key, node in config.items() if key not in free}
    for module in sorted(set(named_modules(acting))):
        files = [file for folder in _import_folders(module.partition(".")[0]) for file in _with_imports(folder, module)]
        if files:
            digests[module] = _digest(files)
    return digests


def objection(saved: Mapping[str, str], config: Mapping[str, Any], folder: Path, trust: Trust) -> str | None:
    """Which of the `saved` modules of a folder is not what it was, in a line; None if the user named it now."""
    for name, digest in module_digests(config).items():
        if digest != saved.get(name, digest) and not trust.is_named(name):
            package = name.partition(".")[0]
            file = [file for home in _import_folders(package) for file in _files(home, name)][-1]
            return (
                f"{display_path(folder)} was made with another {name} than is here now: {display_path(file)} or what "
                "it imports has changed; put it back or, if the change changes no result, add --trust-modules "
                f"{package}"
            )
    return None


def _import_folders(package: str) -> list[Path]:
    """The folders that a module or package would be imported from; none of what is installed or Python's own."""
    locations = map(Path, import_locations(package))
    folders = [location.parent.parent if location.name == _START else location.parent for location in locations]
    return [folder for folder in folders if not INSTALLED & set(folder.parts) and folder not in _PYTHON]


def _files(folder: Path, module: str) -> list[Path]:
    """The files that `import a.b.c` runs, the packages' first; those that are there, of what lies in the folder."""
    names = module.split(".")
    if not all(map(str.isidentifier, names)):  # a folder may name anything
        return []
    packages = [folder.joinpath(*names[:count], _START) for count in range(1, len(names) + 1)]
    return [file for file in (*packages, folder.joinpath(*names).with_suffix(".py")) if file.is_file()]


def _with_imports(folder: Path, module: str) -> list[Path]:
    """The files of a module and of all in the folder that it imports, or they do, in the order of their paths."""
    files, pending = set(), _files(folder, module)
    while pending:
        file = pending.pop()
        if file not in files:
            files.add(file)
            parents = file.relative_to(folder).parts[:-1]
            names = (name for name in _imported_names(file, parents) if name.partition(".")[0] != OURS)
            pending += [imported for name in names for imported in _files(folder, name)]
    return sorted(files)


def _imported_names(file: Path, parents: tuple[str, ...]) -> Iterator[str]:
    """The dotted names that a file in the packages `parents` imports, also those that may be no modules."""
    with suppress(SyntaxError, ValueError, OSError):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level <= len(parents):
                above = parents[: len(parents) - node.level + 1] if node.level else ()
                module = ".".join([*above, *([node.module] if node.module else [])])
                yield from (f"{module}.{alias.name}".lstrip(".") for alias in node.names)
                yield module


def _digest(files: list[Path]) -> str:
    hasher = hashlib.blake2b(digest_size=16)
    for file in files:
        content = file.read_bytes()
        hasher.update(f"{file.name} {len(content)};".encode())
        hasher.update(content)
    return hasher.hexdigest()
