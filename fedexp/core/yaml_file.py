"""Reads the YAML files of run folders as plain values; anybody may have written them.

What `fedexp` and Hydra write into a folder has no anchors, no tags and a few levels. Anything else may expand to far
more than its size, or not end at all, so it is refused before it is built.
"""

from pathlib import Path
from typing import Any

import yaml

from fedexp.core.errors import ConfigError
from fedexp.core.files import shown
from fedexp.core.own_files import read_own
from fedexp.core.references import lookups

LARGEST, DEEPEST, MOST = 8_000_000, 40, 1_000_000  # bytes; levels; values read to resolve all references
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping of a file; empty if the file is absent or empty.

    Raises:
        ConfigError: it is not a regular file, or holds anything but a plain mapping.
    """
    found = _read(path)
    if found is not None and not isinstance(found, dict):
        raise ConfigError(f"{shown(path)} must hold keys and values, got {_kind(found)}; restore it")
    return found or {}


def read_yaml_list(path: Path) -> list[Any]:
    """The list in a YAML file; empty if the file is absent or empty."""
    found = _read(path)
    if found is not None and not isinstance(found, list):
        raise ConfigError(f"{shown(path)} must hold a list, got {_kind(found)}; restore it")
    return found or []


def _read(path: Path) -> Any:
    try:
        text = read_own(path, LARGEST).decode()
        _demand_plain(text, path)
        return _demand_modest(yaml.load(text, Loader=_LOADER), path)
    except FileNotFoundError:
        return None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(
            f"{shown(path)} cannot be read as YAML: {' '.join(str(error).split())}; restore it"
        ) from error


def _demand_plain(text: str, path: Path) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise ConfigError(f"{shown(path)} must be plain YAML, got an anchor or alias; write its values out")
        if getattr(event, "tag", None):
            raise ConfigError(f"{shown(path)} must be plain YAML, got the tag {event.tag}; leave it out")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise ConfigError(f"{shown(path)} must be at most {DEEPEST} levels deep; restore it")


def _demand_modest(found: Any, path: Path) -> Any:
    if lookups(found) > MOST:
        raise ConfigError(f"{shown(path)} must refer to its own values at most {MOST:,} times; restore it")
    return found


def _kind(found: Any) -> str:
    return {list: "a list", str: "a text"}.get(type(found), f"a {type(found).__name__}")
