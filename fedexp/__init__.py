"""fedexp: federated-learning experiments from the command line, or from a script: `from fedexp import run`."""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fedexp.core.version import __version__ as __version__

if TYPE_CHECKING:
    from fedexp.api import Finished, run
    from fedexp.core.errors import ConfigError, RunError

__all__ = ["ConfigError", "Finished", "RunError", "run"]


def __getattr__(name: str) -> Any:
    """Imports what scripts use when they ask for it: the command line must not wait for Hydra and PyTorch."""
    if name not in __all__:
        raise AttributeError(f"module 'fedexp' has no attribute {name!r}")
    from fedexp import api

    return getattr(api, name)


class _Package(ModuleType):
    """Where `run` is the function, although a room has that name: `from fedexp.run import ...` finds the room."""

    @property
    def run(self) -> Any:
        return __getattr__("run")

    @run.setter
    def run(self, room: ModuleType) -> None:
        """Python hands every module over to its package; this one stands in `sys.modules` alone."""


sys.modules[__name__].__class__ = _Package
