"""The parts that config groups choose, and the only names that the author of a part may import.

`conf/GROUP/OPTION.yaml` names a class of `fedexp/parts/GROUP/OPTION.py`. What every option of a group must do is said
in `fedexp/parts/GROUP/contract.py`. Where a group can do without, the base class there does nothing: it is `none`, or
what the group calls it. What a part may ask is said in `fedexp/parts/context.py`. The names are listed in the stub
beside this file, `__init__.pyi`, which type checkers read, too.
"""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_MODULES = {name: module for module, name in re.findall(r"^from (\S+) import (\w+) as \2$", _STUB, re.MULTILINE)}
__all__ = sorted(_MODULES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    """Imports a name when it is asked for: commands that load no part must not wait for PyTorch."""
    if name not in _MODULES:
        raise AttributeError(f"module 'fedexp.parts' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """The names above, which are there although they are imported when they are asked for."""
    return [*globals(), *__all__]
