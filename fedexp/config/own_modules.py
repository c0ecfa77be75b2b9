"""Digests of the modules of one's own that a config names, so that a run folder tells whether they have changed since.

A digest covers the files of the module, or of the package that it is in, and the files beside it that it imports. What
is installed does not count: its version says what it is.
"""

import ast
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from fedexp.config.trust import Trust, import_locations, named_packages
from fedexp.core.imports.own_files import INSTALLED
from fedexp.files.atomic import display_path


def module_digests(config: Mapping[str, Any]) -> dict[str, str]:
    """The digest of each module of one's own that a config names, by the name of its package; imports nothing."""
    digests = {}
    for package in sorted(set(named_packages(config))):
        files = [file for location in import_locations(package) for file in _source_files(Path(location))]
        if files and not any(INSTALLED & set(file.parts) for file in files):
            digests[package] = _digest(files)
    return digests


def objection(saved: Mapping[str, str], config: Mapping[str, Any], folder: Path, trust: Trust) -> str | None:
    """Which of the `saved` modules of a folder is not what it was, in a line; None if the user named it now."""
    for name, digest in module_digests(config).items():
        if digest != saved.get(name, digest) and not trust.is_named(name):
            source = _root(Path(import_locations(name)[0]))
            shown = display_path(source)
            changed = f"a file in {shown} has" if source.is_dir() else f"{shown} or what it imports has"
            return (
                f"{display_path(folder)} was made with another {name} than is here now: {changed} changed; put it "
                f"back or, if the change changes no result, add --trust-modules {name}"
            )
    return None


def _root(location: Path) -> Path:
    """The file of a module, or the folder of a package."""
    return location.parent if location.name == "__init__.py" else location


def _source_files(location: Path) -> list[Path]:
    """The Python files of a module, or of the package whose `__init__.py` or folder this is."""
    root = _root(location)
    return sorted(root.rglob("*.py")) if root.is_dir() else sorted(_with_imports(root))


def _with_imports(module: Path) -> set[Path]:
    """A module's file and the files beside it that it imports, or they do."""
    files, pending = set(), [module]
    while pending:
        file = pending.pop()
        if file not in files and file.is_file():
            files.add(file)
            pending += [file.with_name(f"{name}.py") for name in _imported_names(file)]
    return files


def _imported_names(file: Path) -> Iterator[str]:
    with suppress(SyntaxError, ValueError, OSError):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.partition(".")[0]


def _digest(files: list[Path]) -> str:
    hasher = hashlib.blake2b(digest_size=16)
    for file in files:
        content = file.read_bytes()
        hasher.update(f"{file.name} {len(content)};".encode())
        hasher.update(content)
    return hasher.hexdigest()
