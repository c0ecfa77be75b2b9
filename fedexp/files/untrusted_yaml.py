"""Reads the YAML files of run folders as plain values; anybody may have written them.

What `fedexp` and Hydra write into a folder has no anchors, no tags and a few levels. Anything else may expand to far
more than its size, or not end at all, so it is refused before it is built.
"""

from pathlib import Path
from typing import Any, TypeVar

import yaml

from fedexp.core.errors import ConfigError
from fedexp.files.atomic import display_path
from fedexp.files.untrusted import read_regular
from fedexp.files.untrusted_json import MAX_BYTES, MAX_DEPTH

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
K = TypeVar("K", dict, list)


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping of a file; empty if the file is absent or empty.

    Raises:
        ConfigError: it is not a regular file, or holds anything but a plain mapping.
    """
    return _read(path, dict, "keys and values")


def read_yaml_list(path: Path) -> list[Any]:
    """The list in a YAML file; empty if the file is absent or empty."""
    return _read(path, list, "a list")


def _read(path: Path, kind: type[K], wanted: str) -> K:
    try:
        text = read_regular(path, MAX_BYTES).decode()
        _refuse_anchors_and_tags(text, path)
        content = yaml.load(text, Loader=_LOADER)
    except FileNotFoundError:
        return kind()
    except ConfigError:
        raise
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"{display_path(path)} cannot be read as YAML: {' '.join(str(error).split())}; restore it"
        ) from error
    if content is not None and not isinstance(content, kind):
        name = {list: "a list", str: "a text"}.get(type(content), f"a {type(content).__name__}")
        raise ConfigError(f"{display_path(path)} must hold {wanted}, got {name}; restore it")
    return content or kind()


def _refuse_anchors_and_tags(text: str, path: Path) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise ConfigError(f"{display_path(path)} must be plain YAML, got an anchor or alias; write its values out")
        if getattr(event, "tag", None):
            raise ConfigError(f"{display_path(path)} must be plain YAML, got the tag {event.tag}; leave it out")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise ConfigError(f"{display_path(path)} must be at most {MAX_DEPTH} levels deep; restore it")
