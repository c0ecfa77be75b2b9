"""What Hydra has noted in the folder of a run: the config, the options chosen, the overrides."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from fedexp.core.errors import ConfigError
from fedexp.core.files import shown
from fedexp.core.moved import renewed


def written(folder: Path) -> dict[str, Any]:
    """The config with its interpolations and today's names of parts; empty where there is none."""
    return renewed(_read(folder, "config"))


def choices(folder: Path) -> Mapping[str, str | None]:
    """The option of each group, those of Hydra's own groups too; empty for a run that Hydra did not start."""
    node = _read(folder, "hydra")
    for name in ("hydra", "runtime", "choices"):
        node = node.get(name) if isinstance(node, Mapping) else None
    if not isinstance(node, Mapping):
        return {}
    for name, option in node.items():
        if not (isinstance(name, str) and isinstance(option, str | None)):
            raise ConfigError(f"{shown(folder)}/.hydra/hydra.yaml must have texts as choices, got {name!r}: {option!r}")
    return node


def overrides(folder: Path) -> list[str]:
    """The words that made the config, in their order."""
    return [str(word) for word in _read(folder, "overrides") or ()]


def _read(folder: Path, name: str) -> Any:
    """The content of a file; an empty mapping where there is none.

    Raises:
        ConfigError: it cannot be read.
    """
    path = folder / ".hydra" / f"{name}.yaml"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        node = (yaml.load(path.read_text(encoding="utf-8"), Loader=loader) if path.is_file() else None) or {}
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{shown(path)} cannot be read as YAML: {error}") from error
    if node and not isinstance(node, list if name == "overrides" else dict):
        raise ConfigError(f"{shown(path)} must hold a {'list' if name == 'overrides' else 'mapping'}; is it damaged?")
    return node
