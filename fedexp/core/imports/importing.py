"""Imports an object by its dotted name; every failure is one readable line."""

import os
import re
import sys
from contextlib import nullcontext, suppress
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fedexp.core.errors import ConfigError, nearest_hint
from fedexp.core.imports import own_files
from fedexp.core.user_code import refuse_changed_settings, refuse_errors

FACTORY = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")  # module:name


def find_package(package: str) -> ModuleSpec | None:
    """Where a package would be imported from, without importing it; None if it is nowhere.

    The working folder comes last, behind all that is installed.
    """
    with suppress(ImportError, ValueError):
        if spec := find_spec(package):
            return spec
    with suppress(FileNotFoundError):  # the working folder was removed
        return PathFinder.find_spec(package, [str(Path.cwd())])
    return None


def import_object(target: str, where: str, expected: str = "a part") -> Any:
    """The object with a dotted name, or `module:name`; `where` is its config key, `expected` what it must be."""
    module, _, name = target.replace(":", ".").rpartition(".")
    ours = module.startswith("fedexp.")
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # torch.compile gives back what it is given
    if not ours:
        _prepare_import(target, where, expected)
    with nullcontext() if ours else refuse_changed_settings(f"{where}={target}: its module"):
        try:
            with refuse_errors(f"{where}={target} cannot be imported:", allowed=(ModuleNotFoundError, AttributeError)):
                return getattr((import_module if ours else own_files.import_own)(module), name)
        except ConfigError as error:
            if "Cannot overwrite attribute" in str(error):
                raise ConfigError(f"{error}; a part is a dataclass by itself, leave @dataclass out") from error
            raise
        except ModuleNotFoundError as error:
            if not error.name or not f"{module}.".startswith(f"{error.name}."):
                raise ConfigError(f"{where}={target} cannot be imported: {error}") from error
            raise ConfigError(
                f"{where} must name {expected}, but {_missing_module(target, error.name, ours)}"
            ) from None
        except AttributeError as error:
            if error.name != name:
                raise ConfigError(f"{where}={target} cannot be imported: {error}") from error
            hint = _similar(module, name)
            raise ConfigError(f"{where} must name {expected}, but {target} does not exist{hint}") from None


def _prepare_import(target: str, where: str, expected: str) -> None:
    """Refuses what lies in no file, and puts the working folder on Python's path if need be."""
    package = target.replace(":", ".").partition(".")[0]
    if package == "__main__":
        raise ConfigError(
            f"{where} must name {expected} in a file of its own, got {target} of the script or notebook that runs; "
            f"write it into my_parts.py, and name my_parts{target.removeprefix(package)}"
        )
    _add_working_folder(package)


def _add_working_folder(package: str) -> None:
    """Puts the working folder last on Python's path if a package lies there and nowhere else."""
    with suppress(ImportError, ValueError, FileNotFoundError):
        if find_spec(package) is None and find_package(package) is not None:
            sys.path.append(str(Path.cwd()))


def _similar(module: str, name: str) -> str:
    """A hint at what a module has, that is close to a name; empty where nothing is."""
    names = [public for public in dir(sys.modules.get(module)) if not public.startswith("_")]
    hint = nearest_hint(name, names)
    return f"; {hint}" if hint else ""


def _missing_module(target: str, module: str, ours: bool) -> str:
    """The message about a module that does not exist."""
    file = target.replace(".py:", ":")
    if module.endswith(".py"):
        return f"{target.partition(':')[0]} is a file and no module; write {file}"
    if ours:
        return f"there is no module {module}"
    files = [path.stem for path in Path.cwd().glob("*.py")]
    cure = nearest_hint(module, files) or "go to its folder, put that on PYTHONPATH, or install it"
    return f"there is no module {module} here; {cure}"
