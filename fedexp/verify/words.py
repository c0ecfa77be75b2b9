"""Checks the saved options and typed words of a run against its config."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from fedexp.config import catalog, roles, saved_config
from fedexp.config.location import conf_dir
from fedexp.config.option_names import option_names
from fedexp.config.saved_config import SavedConfig
from fedexp.core.nested import flatten_keys, lookup
from fedexp.files.atomic import display_path
from fedexp.files.untrusted_yaml import read_yaml, read_yaml_list
from fedexp.run.state import checkpoint


def override_complaints(folder: Path) -> Iterator[str]:
    """Yields options and words that contradict the config, and what the files for people say otherwise."""
    saved, where = saved_config.read(folder), display_path(folder / saved_config.NAME)
    yield from _yaml_complaints(folder, saved)
    written, names = saved.raw_config, option_names(saved.raw_config, saved.choices)
    groups = {*saved.choices, *catalog.groups(conf_dir()), *roles.role_names()}
    try:
        words = _override_values(saved.overrides)
    except HydraException:
        yield f"the overrides of {where} are no words of a run"
        return
    for group, option in saved.choices.items():
        if _other_option(group, option, names, words):
            yield f"{where} says {group}={option} among its choices, but its config has {names[group]}"
    for key, value in words.items():
        if _other_option(key, value, names, words):
            yield f"{where} says {key}={value} among its overrides, but its config has {names[key]}"
        elif key not in groups and not _is_free(key) and not _values_agree(value, config_value := lookup(written, key)):
            yield f"{where} says {key}={value} among its overrides, but its config has {config_value}"


def _yaml_complaints(folder: Path, saved: SavedConfig) -> Iterator[str]:
    """Yields what the files for people say that `config.json` does not."""
    paths = {name: saved_config.yaml_path(folder, name) for name in saved_config.FILES}
    if missing := [path for path in paths.values() if not path.is_file()]:
        yield from (f"{display_path(path)} is missing" for path in missing)
        return
    if read_yaml_list(paths["overrides"]) != saved.overrides:
        yield f"{display_path(paths['overrides'])} must hold the overrides of {saved_config.NAME}, but has other words"
    choices = lookup(read_yaml(paths["hydra"]), "hydra.runtime.choices")
    for name, in_json, in_yaml in (
        ("hydra", saved.choices, choices if isinstance(choices, Mapping) else {}),
        ("config", flatten_keys(saved.raw_config), flatten_keys(read_yaml(paths["config"]))),
    ):
        for key in dict.fromkeys([*in_json, *in_yaml]):
            value, other_value = in_yaml.get(key), in_json.get(key)
            if value != other_value and not _is_free(str(key)):
                yield f"{display_path(paths[name])} has {key}={value}, but {saved_config.NAME} has {other_value}"


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


def _values_agree(value: Any, config_value: Any) -> bool:
    """Whether a word's value is that of the config; one that read the environment was replaced by its value."""
    reads_environment = isinstance(value, str) and "oc.env" in value
    return reads_environment or value == config_value or str(value) == str(config_value)
