"""What `fedexp list --json` says: groups, the options of a group, the keys of an option."""

from pathlib import Path
from typing import Any

from fedexp.commands.arguments import candidates
from fedexp.config import catalog, roles
from fedexp.config.location import conf_dir


def groups(config_dir: Path | None) -> dict[str, Any]:
    """Every group, what it decides, its default and its options."""
    installed = {role.name: role for role in roles.installed_roles()}
    purposes = {name: role.purpose for name, role in installed.items()} | dict(catalog.purposes(conf_dir()))
    defaults = {name: role.default for name, role in installed.items()} | dict(catalog.defaults(conf_dir()))
    return {
        "groups": [
            {
                "group": name,
                "purpose": purposes.get(name, ""),
                "default": defaults.get(name),
                "options": sorted(candidates.options(name, config_dir)),
            }
            for name in dict.fromkeys([*catalog.purposes(conf_dir()), *candidates.groups(config_dir)])
        ]
    }


def options(group: str, config_dir: Path | None) -> dict[str, Any]:
    """Every option of a group and what it does; of a section of the config its keys."""
    if group in catalog.sections(conf_dir()):
        section = catalog.section_keys(conf_dir(), group).items()
        entries = [{"key": key, "value": value, "description": text} for key, (value, text) in section]
        return {"section": group, "keys": entries}
    names = sorted(candidates.options(group, config_dir))
    folders = {name: candidates.source_folder(group, name, config_dir) for name in names}
    return {
        "group": group,
        "options": [{"option": name, "description": catalog.description(folders[name], group, name)} for name in names],
    }


def keys(group: str, option: str, config_dir: Path | None) -> dict[str, Any]:
    """Every key that an option sets, with its value and what the file says of it."""
    conf = candidates.source_folder(group, option, config_dir)
    path = conf / group / f"{option}.yaml"
    comments, prefix = catalog.comments(path), "" if catalog.is_global(path) else f"{group}."
    return {
        "group": group,
        "option": option,
        "description": catalog.description(conf, group, option),
        "chooses": catalog.choices(path),
        "keys": [
            {"key": f"{prefix}{key}", "value": value, "description": comments.get(key, "")}
            for key, value in catalog.dotted_values(catalog.load(path)).items()
            if not key.startswith("hydra.")
        ],
        "sweeps": catalog.sweep(path),
    }
