"""Saves and reads the config, the chosen options and the overrides in a run folder.

The three files are those that Hydra would leave; here each is whole or absent, and the config comes last. No password
of an address is noted.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, ListConfig, OmegaConf, open_dict

from fedexp.config.resolvers import with_environment
from fedexp.core.errors import ConfigError
from fedexp.core.renamed_targets import migrate_config
from fedexp.files.atomic import display_path, write_atomically
from fedexp.files.untrusted_yaml import read_yaml, read_yaml_list
from fedexp.files.url_credentials import without_passwords

FOLDER, FILES = ".hydra", ("hydra", "overrides", "config")


def save(folder: Path, run_config: DictConfig) -> None:
    """Saves the missing files of a run's composed config; all of them if the config, written last, is missing."""
    has_config = exists(folder)
    with open_dict(run_config):
        run_config.hydra.runtime.output_dir = str(folder.absolute())
    hydra_config = OmegaConf.masked_copy(run_config, ["hydra"])
    config = with_environment(OmegaConf.masked_copy(run_config, [str(key) for key in run_config if key != "hydra"]))
    for name, content in zip(FILES, (hydra_config, run_config.hydra.overrides.task, config), strict=True):
        if not (has_config and _file_exists(folder, name)):
            write_atomically(_path(folder, name), as_text(content).encode())


def as_text(content: DictConfig | ListConfig) -> str:
    """A config as YAML, with unresolved interpolations."""
    container = without_passwords(OmegaConf.to_container(content, resolve=False))
    return OmegaConf.to_yaml(OmegaConf.create(container))


def replace_part(folder: Path, role: str, node: Any) -> None:
    """Replaces the part of one role in the saved config."""
    text = yaml.safe_dump(without_passwords({**read_raw(folder), role: node}), sort_keys=False)
    write_atomically(_path(folder, "config"), text.encode())


def is_complete(folder: Path) -> bool:
    """Whether all three files are there."""
    return not missing_files(folder)


def missing_files(folder: Path) -> list[Path]:
    """Those of the three files that are not there, or are empty."""
    return [_path(folder, name) for name in FILES if not _file_exists(folder, name)]


def exists(folder: Path) -> bool:
    """Whether the config is there; a process that was killed may have left none, or an empty one."""
    return _file_exists(folder, "config")


def read_raw(folder: Path) -> dict[str, Any]:
    """The saved config with unresolved interpolations and today's names of parts; empty if there is none."""
    return migrate_config(read_yaml(_path(folder, "config")))


def choices(folder: Path) -> Mapping[str, str | None]:
    """The option of each group, those of Hydra's own groups too; empty for a run that Hydra did not start."""
    node: Any = read_yaml(_path(folder, "hydra"))
    for name in ("hydra", "runtime", "choices"):
        node = node.get(name) if isinstance(node, Mapping) else None
    if not isinstance(node, Mapping):
        return {}
    for name, option in node.items():
        if not (isinstance(name, str) and isinstance(option, str | None)):
            raise ConfigError(
                f"{display_path(folder)}/.hydra/hydra.yaml must have texts as choices, got {name!r}: {option!r}"
            )
    return node


def overrides(folder: Path) -> list[str]:
    """The overrides that made the config, in their order."""
    return [str(word) for word in read_yaml_list(_path(folder, "overrides"))]


def _path(folder: Path, name: str) -> Path:
    return folder / FOLDER / f"{name}.yaml"


def _file_exists(folder: Path, name: str) -> bool:
    path = _path(folder, name)
    return path.is_file() and path.stat().st_size > 0
