"""The options that a run chose, read from its config; what was recorded counts only where that cannot tell."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from fedexp.config import catalog, roles
from fedexp.config.location import conf_dir
from fedexp.core.nested import lookup


def option_names(written: Mapping[str, Any], recorded: Mapping[str, str | None]) -> dict[str, str | None]:
    """The option of each group of a run, given its config (interpolations as written) and what was recorded beside it.

    The part of a group tells its option; one inside of another part is that of `GROUP@KEY`. A bundle (`algorithm`,
    `experiment`, ...) leaves no part: its recorded name counts where the run has what makes it.
    """
    nodes = {name: written.get(name) for name in roles.role_names()}
    nodes |= {name: lookup(written, name.partition("@")[2]) for name in recorded if "@" in name}
    options = {
        name: _find_option(name.partition("@")[0], node, recorded.get(name))
        for name, node in nodes.items()
        if isinstance(node, Mapping)
    }
    named = {name: option for name, option in options.items() if option}
    option_by_group = {**recorded, **named}
    return {
        name: option
        for name, option in option_by_group.items()
        if name in named or _is_consistent(name, option, option_by_group)
    }


def _find_option(group: str, node: Mapping[str, Any], recorded: str | None) -> str | None:
    """The option whose class a part has; of several, the one that shares most values with the part.

    None if the part has no class.
    """
    target = node.get("_target_")
    if not isinstance(target, str):
        return None
    parts = _read_options(conf_dir(), group)
    matching = {
        name: part for name, part in parts.items() if part.get("_target_") == target and _same_layers(part, node)
    }
    equal = {name: sum(node.get(key) == value for key, value in part.items()) for name, part in matching.items()}
    best = [name for name in matching if equal[name] == max(equal.values())]
    if best:
        return recorded if recorded in best else best[0]
    return target.rpartition(".")[0].rpartition(".")[2]


@cache
def _read_options(conf: Path, group: str) -> dict[str, dict[str, Any]]:
    """The parts of a group's options, once a process: a report asks for those of every run of a sweep."""
    return {name: catalog.part(conf, group, name) for name in catalog.options(conf, group)}


def _same_layers(part: Mapping[str, Any], node: Mapping[str, Any]) -> bool:
    """Whether an option has the list of layers of a part, or none: another list is another network."""
    return not isinstance(part.get("layers"), list) or part["layers"] == node.get("layers")


def _is_consistent(group: str, option: str | None, option_by_group: Mapping[str, str | None]) -> bool:
    """Whether a recorded option still holds: a bundle's does if the run has all parts that the bundle chooses."""
    if option is None or group in roles.role_names() or group.partition("/")[0] == "hydra":
        return True
    conf = conf_dir()
    path = conf / group / f"{option}.yaml"
    if not re.fullmatch(r"\w+", option) or not path.is_file():
        return False
    swept = catalog.sweep(path)
    chosen = {
        name: value for name, value in catalog.choices(path).items() if name not in swept and name in option_by_group
    }
    return chosen.items() <= option_by_group.items()
