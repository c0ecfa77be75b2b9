"""Imports an object by its dotted name; every failure is one readable line."""

import os
import re
from contextlib import nullcontext
from importlib import import_module
from typing import Any

from fedexp.core.errors import ConfigError
from fedexp.core.user_code import errors_refused, settings_kept

FACTORY = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")  # module:name


def imported(target: str, where: str, what: str = "a part") -> Any:
    """The object with a dotted name, or `module:name`; `where` is the config key that names it, `what` it must be."""
    module, _, name = target.replace(":", ".").rpartition(".")
    ours = module.startswith("fedexp.")
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # torch.compile gives back what it is given
    with nullcontext() if ours else settings_kept(f"{where}={target}: its module"):
        try:
            with errors_refused(f"{where}={target} cannot be imported:", besides=(ModuleNotFoundError, AttributeError)):
                return getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            if not error.name or not f"{module}.".startswith(f"{error.name}."):
                raise ConfigError(f"{where}={target} cannot be imported: {error}") from error
            raise ConfigError(f"{where} must name {what}, but {_absent(target, error.name, ours)}") from None
        except AttributeError as error:
            if error.name != name:
                raise ConfigError(f"{where}={target} cannot be imported: {error}") from error
            raise ConfigError(f"{where} must name {what}, but {target} does not exist") from None


def _absent(target: str, module: str, ours: bool) -> str:
    """The message about a module that does not exist."""
    file = target.replace(".py:", ":")
    if module.endswith(".py"):
        return f"{target.partition(':')[0]} is a file and no module; write {file}"
    return f"there is no module {module}" + ("" if ours else "; put its folder on PYTHONPATH or install it")
