"""What a bundle chooses and sets: the parts of an algorithm give it its name, and nobody typed its values."""

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from fedexp.config import catalog
from fedexp.config.location import conf_dir
from fedexp.config.override_text import key_of, short_text
from fedexp.core.errors import ConfigError

GROUP = "algorithm"


def refuse_replaced_parts(config: DictConfig) -> None:
    """Raises ConfigError where a composed config has another part than its algorithm chooses.

    Such a run would be called by the name of an algorithm that it is not.
    """
    chosen: dict[str, Any] = dict(config.hydra.runtime.choices)
    name = chosen.get(GROUP)
    path = _file(config, GROUP, name)
    if path is None:
        return
    parts = catalog.choices(path)
    for group, option in parts.items():
        if group in chosen and chosen[group] != option:
            usual, keys = catalog.defaults(conf_dir()), catalog.dotted_values(catalog.load(path))
            remaining = {key: part for key, part in parts.items() if key != group and part != usual.get(key)}
            remaining |= {key: value for key, value in keys.items() if not key.startswith(f"{group}.")}
            remaining[group] = chosen[group]
            words = shlex.join(f"{key}={value}" for key, value in remaining.items())
            raise ConfigError(
                f"{GROUP}={name} chooses {group}={option}, but the run has {group}={chosen[group]}; leave one of them "
                f"out, or name the parts: {words}"
            )

    for group, option in parts.items():
        node = config.get(group) or {}
        for key, value in _definition(group, option).items():
            actual = node.get(key, value)
            if actual != value:
                raise ConfigError(
                    f"{GROUP}={name} is {group}={option}, which has {group}.{key}={short_text(value)}, but the run has "
                    f"{group}.{key}={short_text(actual)}; leave that out, or name the parts: "
                    + " ".join(f"{key}={part}" for key, part in parts.items())
                )


def _definition(group: str, option: str) -> dict[str, Any]:
    """What makes an option out of another one of its group, whose class it has, but for its learning rate.

    Nothing of an option with a class of its own.
    """
    if option not in catalog.options(conf_dir(), group):
        return {}
    node = catalog.part(conf_dir(), group, option)
    base = str(node.get("_target_")).split(".")[-2:-1]
    if base == [option] or not base or base[0] not in catalog.options(conf_dir(), group):
        return {}
    usual = catalog.part(conf_dir(), group, base[0])
    return {
        key: value
        for key, value in node.items()
        if key in usual and key not in ("_target_", "lr") and value != usual[key] and "${" not in str(value)
    }


@contextmanager
def name_setters(config: DictConfig, overrides: Sequence[str]) -> Iterator[None]:
    """Says in a refusal of a composed config of a value in it which bundle set it, if nobody typed it.

    Where it advises another part than the algorithm chooses, it says to leave the algorithm out.
    """
    try:
        yield
    except ConfigError as error:
        message, typed = str(error), set(map(key_of, overrides))
        for key, value, bundle in _bundle_values(config):
            before, word, after = message.partition(f"{key}={short_text(value)}")
            if word and key not in typed and not re.match(r"[\w.]", after):
                message = f"{before}{word} (set by {bundle}){after}"
        _, used, advice = message.rpartition("; use ")
        error.args = (message + (_replaced_algorithm(config, advice) if used else ""),)
        raise


def _replaced_algorithm(config: DictConfig, advice: str) -> str:
    """What to leave out where the parts that an error message advises are others than the algorithm chooses."""
    name = dict(config.hydra.runtime.choices).get(GROUP)
    path = _file(config, GROUP, name)
    groups = {word.partition("=")[0] for word in advice.split() if "=" in word}
    return f" instead of {GROUP}={name}" if path and groups & catalog.choices(path).keys() else ""


def _bundle_values(config: DictConfig) -> Iterator[tuple[str, Any, str]]:
    """Yields each key that a bundle sets, its value, and the bundle as it is chosen."""
    for group, option in dict(config.hydra.runtime.choices).items():
        path = _file(config, group, option)
        if path and catalog.is_global(path):
            for key, value in catalog.dotted_values(catalog.load(path)).items():
                yield key, value, f"{group}={option}"


def _file(config: DictConfig, group: str, option: Any) -> Path | None:
    """The file of an option that a composed config chose; None where it lies in a package."""
    folders = (Path(source.path) for source in config.hydra.runtime.config_sources if source.schema == "file")
    return next((path for path in (folder / group / f"{option}.yaml" for folder in folders) if path.is_file()), None)
