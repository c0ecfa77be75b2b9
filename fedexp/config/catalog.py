"""What can be chosen, read straight from the YAML files of `conf/`: groups, options and keys, without Hydra."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

from fedexp.config.override_text import short_text
from fedexp.core import nested

_SPLIT = "federation"
_WORK = ("clients", "participants", "count", "epochs", "steps", "batch_size", "lr", "local_epochs", "local_lr")


def groups(conf: Path) -> list[str]:
    """The config groups that hold at least one option."""
    return sorted(folder.name for folder in conf.iterdir() if folder.is_dir() and any(folder.glob("*.yaml")))


def options(conf: Path, group: str) -> list[str]:
    """The names to put after `group=`."""
    return sorted(path.stem for path in (conf / group).glob("*.yaml"))


def description(conf: Path, group: str, option: str) -> str:
    """The first comment line of the option's file."""
    lines = map(str.strip, (conf / group / f"{option}.yaml").read_text(encoding="utf-8").splitlines())
    head = takewhile(lambda line: not line or line.startswith("#"), lines)
    return next((line.lstrip("# ") for line in head if line and "@package" not in line), "")


def is_global(path: Path) -> bool:
    """Whether an option's keys are the run's own, as a bundle's are, instead of its group's."""
    return path.read_text(encoding="utf-8").startswith("# @package _global_")


def defaults(conf: Path) -> dict[str, str]:
    """The option that each group of the root config's defaults list starts with."""
    return choices(conf / "config.yaml")


def purposes(conf: Path) -> dict[str, str]:
    """What each group decides, in the order in which the root config composes them: its comments on them."""
    lines = (conf / "config.yaml").read_text(encoding="utf-8").splitlines()
    matches = (re.match(r"\s*- (?:optional )?(\w+): *\S+(?: +# *(.*))?$", line) for line in lines)
    group_names = groups(conf)
    purpose_by_group = {match[1]: match[2] or "" for match in matches if match and match[1] in group_names}
    return purpose_by_group | {group: "" for group in group_names if group not in purpose_by_group}


def choices(path: Path) -> dict[str, str]:
    """The options of groups that the defaults list of a file chooses; `null` is left out.

    The option of a part inside of another one is that of `GROUP@KEY`.
    """
    entries = (entry for entry in load(path).get("defaults", []) if isinstance(entry, dict))
    chosen = {_choice_name(path, name): option for entry in entries for name, option in entry.items()}
    return {group: str(option) for group, option in chosen.items() if option is not None}


def _choice_name(path: Path, name: str) -> str:
    """An entry of a defaults list as it is typed; `/GROUP@KEY` is below the key of the file's own group."""
    name = re.sub("^(optional |override /)", "", name)
    return re.sub("^/(.*)@", rf"\1@{path.parent.name}.", name)


def sweep(path: Path) -> dict[str, Any]:
    """The keys that an option sweeps under `-m`, with their values."""
    return load(path).get("hydra", {}).get("sweeper", {}).get("params", {})


def keys(conf: Path, chosen: Mapping[str, str]) -> dict[str, Any]:
    """Every dotted key and its value, for the defaults and the options chosen instead of them."""
    top = {name: value for name, value in root(conf).items() if name not in ("defaults", "hydra")}
    values = dotted_values(top)
    for group, option in {**defaults(conf), **chosen}.items():
        if option in options(conf, group):
            values.update(own_keys(conf, group, option))
    return values


def run_keys(conf: Path) -> dict[str, tuple[Any, str]]:
    """The keys that belong to no group, each with its value and the comment in the root's file."""
    known_groups, texts = groups(conf), comments(conf / "config.yaml")
    names = {key: value for key, value in keys(conf, {}).items() if key.partition(".")[0] not in known_groups}
    return {key: (value, texts.get(key, "")) for key, value in names.items()}


def sections(conf: Path) -> list[str]:
    """The nodes of the root that are no groups, such as `scenario`: they have keys, but no options."""
    other_nodes = [*groups(conf), "hydra"]
    return [name for name, node in root(conf).items() if isinstance(node, dict) and name not in other_nodes]


def section_keys(conf: Path, section: str) -> dict[str, tuple[Any, str]]:
    """Those of `run_keys` that are in one of the `sections`."""
    return {key: entry for key, entry in run_keys(conf).items() if key.startswith(f"{section}.")}


def part(conf: Path, group: str, option: str) -> dict[str, Any]:
    """The config node that an option makes of its group, with the parts that are inside of this one.

    Empty where the option is a bundle of others.
    """
    path = conf / group / f"{option}.yaml"
    content = load(path)
    if is_global(path):
        return content.get(group, {})
    inner_parts = {
        name.rpartition(".")[2]: part(conf, name.partition("@")[0], inner)
        for name, inner in inner_choices(conf, group, option).items()
    }
    return content | {key: node | content.get(key, {}) for key, node in inner_parts.items()}


def inner_choices(conf: Path, group: str, option: str) -> dict[str, str]:
    """The options, by `GROUP@KEY`, of the parts inside of the one that an option makes; none for an unknown option."""
    path = conf / group / f"{option}.yaml"
    return {name: inner for name, inner in choices(path).items() if "@" in name} if path.is_file() else {}


def own_keys(conf: Path, group: str, option: str) -> dict[str, Any]:
    """The dotted keys that an option sets, from the root of the config, with their values."""
    path = conf / group / f"{option}.yaml"
    return dotted_values(load(path) if is_global(path) else {group: part(conf, group, option)})


def options_with(conf: Path, group: str, key: str) -> list[str]:
    """The options of a group that know a key."""
    return [name for name in options(conf, group) if f"{group}.{key}" in own_keys(conf, group, name)]


def group_keys(conf: Path, group: str) -> list[str]:
    """The dotted keys that any option of a group sets; none of what is no group."""
    return list(dict.fromkeys(key for name in options(conf, group) for key in own_keys(conf, group, name)))


def dotted_values(node: Mapping[str, Any]) -> dict[str, Any]:
    """The dotted keys of a config file with their values, less what only Hydra and the builder read."""
    items = nested.flatten_keys(node).items()
    return {key: value for key, value in items if key.rpartition(".")[2] not in ("_target_", "defaults")}


def changed_keys(conf: Path, group: str, option: str, value: Callable[[str], Any]) -> list[str]:
    """The keys of a part that are not at their defaults, as `key=value`; of a split every number.

    `value` returns what a run has for a key of the group, dotted where it is nested. A default that follows another
    key is left out, and so is what tells how much work a client does: rate, batches and epochs.
    """
    if option not in options(conf, group):
        return []
    return _differences(dotted_values(part(conf, group, option)), value, always=float if group == _SPLIT else ())


def changed_scenario(conf: Path, value: Callable[[str], Any]) -> list[str]:
    """The keys of the scenario that are not at their defaults, as `key=value`, less numbers of clients and work."""
    return _differences(dotted_values(root(conf)["scenario"]), value)


def _differences(defaults: Mapping[str, Any], value: Callable[[str], Any], always: type | tuple[()] = ()) -> list[str]:
    """What differs from the defaults, or is of the type `always`."""
    values = {key: value(key) for key, text in defaults.items() if key not in _WORK and "${" not in str(text)}
    return [
        f"{key}={short_text(entry)}"
        for key, entry in values.items()
        if entry is not None and (short_text(entry) != short_text(defaults[key]) or isinstance(entry, always))
    ]


def comments(path: Path) -> dict[str, str]:
    """The comment behind each dotted key of a file, on the same line."""
    import yaml

    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    comment_by_key = {}
    for key, end in _value_ends(yaml.compose(text, Loader=yaml.SafeLoader)):
        _, mark, comment = "".join(lines[end.line : end.line + 1])[end.column :].partition("#")
        if mark:
            comment_by_key[key] = comment.strip()
    return comment_by_key


def _value_ends(node: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the dotted keys of a parsed mapping with the position at which their value ends."""
    for name, value in node.value:
        if value.id == "mapping" and not value.flow_style:
            yield from _value_ends(value, f"{prefix}{name.value}.")
        elif value.id == "scalar" or value.flow_style:
            yield f"{prefix}{name.value}", value.end_mark


def root(conf: Path) -> dict[str, Any]:
    """The root config, with unresolved interpolations."""
    return load(conf / "config.yaml")


@cache
def load(path: Path) -> dict[str, Any]:
    """One YAML file as a mapping; interpolations stay texts."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text(encoding="utf-8"), Loader=loader) or {}
