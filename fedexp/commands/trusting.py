"""`--trust-modules MODULE,...` and `--config-dir DIR`: what the user vouches for when a folder is taken up."""

import re
from collections.abc import Sequence
from pathlib import Path

from fedexp.config.trust import Trust
from fedexp.core.errors import ConfigError

MODULES, OPTIONS = "--trust-modules", "--config-dir"
_NAMES = re.compile(r"\w+(\.\w+)*(,\w+(\.\w+)*)*")


def split(words: Sequence[str]) -> tuple[Trust, list[str]]:
    """What is vouched for, and the other words."""
    modules: list[str] = []
    config_dir: Path | None = None
    others: list[str] = []
    left = iter(words)
    for word in left:
        flag, equal, value = word.partition("=")
        if flag not in (MODULES, OPTIONS):
            others.append(word)
            continue
        value = value if equal else next(left, "")
        if flag == MODULES:
            modules += _modules(value)
        else:
            config_dir = Path(value)
    return Trust(tuple(modules), config_dir), others


def _modules(value: str) -> list[str]:
    if not _NAMES.fullmatch(value):
        raise ConfigError(f"{MODULES} needs names of modules, e.g. {MODULES} mine; got {value or 'none'}")
    return value.split(",")
