"""Checks the saved options and typed words of a run against its config."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from fedexp.config import catalog, roles, saved_config
from fedexp.config.location import conf_dir
from fedexp.config.option_names import option_names
from fedexp.core.nested import flatten_keys
from fedexp.files.atomic import display_path
from fedexp.run.state import checkpoint


def override_complaints(folder: Path) -> Iterator[str]:
    """Yields options in hydra.yaml and words in overrides.yaml that contradict the config, or that they are missing."""
    if missing := saved_config.missing_files(folder):
        yield from (f"{display_path(path)} is missing" for path in missing)
        return
    written, recorded_options = saved_config.read_raw(folder), saved_config.choices(folder)
    config_folder = folder / saved_config.FOLDER
    names, groups = (
        option_names(written, recorded_options),
        {*recorded_options, *catalog.groups(conf_dir()), *roles.role_names()},
    )
    try:
        words = _override_values(saved_config.overrides(folder))
    except HydraException:
        yield f"{display_path(config_folder / 'overrides.yaml')} does not hold words of a run"
        return
    for group, option in recorded_options.items():
        if _other_option(group, option, names, words):
            yield (
                f"{display_path(config_folder / 'hydra.yaml')} says {group}={option}, but the config has {names[group]}"
            )
    for key, value in words.items():
        if _other_option(key, value, names, words):
            yield (
                f"{display_path(config_folder / 'overrides.yaml')} says {key}={value}, but the config has {names[key]}"
            )
        elif (
            key not in groups and not _is_free(key) and not _values_agree(value, config_value := _lookup(written, key))
        ):
            yield (
                f"{display_path(config_folder / 'overrides.yaml')} says {key}={value}, but the config has "
                f"{config_value}"
            )


def _is_free(key: str) -> bool:
    """Whether a key changes no result, so that a run may have gone on with another value of it."""
    return key.split(".")[0] in ("hydra", *checkpoint.NEUTRAL_KEYS, *roles.role_names(changes_results=False))


def _other_option(group: str, option: Any, names: Mapping[str, str | None], words: Mapping[str, Any]) -> bool:
    """Whether the run has another option than this one of ours; a word may have replaced the class or the layers."""
    conf, name = conf_dir(), names.get(group)
    if f"{group}._target_" in words or f"{group}.layers" in words:
        return False
    return group in roles.role_names() and name not in (None, option) and option in catalog.options(conf, group)


def _override_values(typed: list[str]) -> dict[str, Any]:
    """The values of the words by dotted key; a later word replaces an earlier one."""
    values: dict[str, Any] = {}
    for word in OverridesParser.create().parse_overrides(typed):
        if not word.is_delete():
            value = word.value()
            values |= (
                flatten_keys({word.key_or_group: value}) if isinstance(value, Mapping) else {word.key_or_group: value}
            )
    return values


def _lookup(node: Any, key: str) -> Any:
    for name in key.split("."):
        node = node.get(name) if isinstance(node, Mapping) else None
    return node


def _values_agree(value: Any, config_value: Any) -> bool:
    """Whether a word's value is that of the config; one that read the environment was replaced by its value."""
    reads_environment = isinstance(value, str) and "oc.env" in value
    return reads_environment or value == config_value or str(value) == str(config_value)
