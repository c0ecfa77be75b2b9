"""fedexp: federated-learning experiments from the command line, or from a script: `from fedexp import run`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fedexp.process.version import __version__ as __version__

if TYPE_CHECKING:
    from fedexp.api import Finished, compare, load, load_sweep, resume, rounds, run, sweep
    from fedexp.core.errors import ConfigError, RunError

__all__ = ["ConfigError", "Finished", "RunError", "compare", "load", "load_sweep", "resume", "rounds", "run", "sweep"]

# Python gives a package the name of a room when the room is first imported. That happens here, and the names go back to
# the functions: scripts call `fedexp.run(...)` and `fedexp.sweep(...)`, whatever was imported before; `from fedexp.run
# import ...` works too.
for room in ("compare", "run", "sweep"):
    import_module(f"fedexp.{room}")
    del globals()[room]
del room


def __getattr__(name: str) -> Any:
    """Imports what scripts use when they ask for it: the command line must not wait for Hydra and PyTorch."""
    if name not in __all__:
        raise AttributeError(f"module 'fedexp' has no attribute {name!r}")
    return getattr(import_module("fedexp.api"), name)


def __dir__() -> list[str]:
    """What scripts use, although it is imported only when they ask for it."""
    return [*__all__, "__version__"]
