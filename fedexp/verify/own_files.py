"""The user's own files of a run, which may have been named from another folder than this one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedexp.config import saved_config
from fedexp.core.nested import lookup
from fedexp.files.untrusted_yaml import read_yaml

_PATHS = {
    "dataset": ("file", "public_file", "path"),
    "federation": ("path",),
    "model": ("weights",),
    "fleet": ("trace",),
    "availability": ("path",),
}


def with_own_files(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The config with relative paths as they were where the run of this folder began, if they lead to something there.

    Only data are looked for in this way, never modules.
    """
    start = lookup(read_yaml(saved_config.yaml_path(folder, "hydra")), "hydra.runtime.cwd")
    if not isinstance(start, str) or not Path(start).is_absolute():
        return config
    changed = {
        group: {**config[group], **_absolute_paths(config[group], names, Path(start))}
        for group, names in _PATHS.items()
        if isinstance(config.get(group), Mapping)
    }
    return {**config, **changed}


def _absolute_paths(node: Mapping[str, Any], names: tuple[str, ...], start: Path) -> dict[str, str]:
    texts = {name: text for name in names if isinstance(text := node.get(name), str) and text}
    return {name: str(start / text) for name, text in texts.items() if _leads_somewhere(start / text)}


def _leads_somewhere(path: Path) -> bool:
    return path.is_file() or path.is_dir()
