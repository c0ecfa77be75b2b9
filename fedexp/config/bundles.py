"""The parts that a bundle of the group `algorithm` chooses, which are what gives it its name."""

from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from fedexp.config import catalog
from fedexp.config.location import conf_dir
from fedexp.core.errors import ConfigError

GROUP = "algorithm"


def refuse_replaced_parts(config: DictConfig) -> None:
    """Raises ConfigError where a composed config has another part than its algorithm chooses.

    Such a run would be called by the name of an algorithm that it is not.
    """
    chosen: dict[str, Any] = dict(config.hydra.runtime.choices)
    name = chosen.get(GROUP)
    folders = (Path(source.path) for source in config.hydra.runtime.config_sources if source.schema == "file")
    paths = (folder / GROUP / f"{name}.yaml" for folder in folders)
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        return
    parts = catalog.choices(path)
    for group, option in parts.items():
        if group in chosen and chosen[group] != option:
            usual, keys = catalog.defaults(conf_dir()), catalog.dotted_values(catalog.load(path))
            remaining = {key: part for key, part in parts.items() if key != group and part != usual.get(key)}
            remaining |= {key: value for key, value in keys.items() if not key.startswith(f"{group}.")}
            words = " ".join(f"{key}={value}" for key, value in {**remaining, group: chosen[group]}.items())
            raise ConfigError(
                f"{GROUP}={name} chooses {group}={option}, but the run has {group}={chosen[group]}; leave one of them "
                f"out, or name the parts: {words}"
            )
