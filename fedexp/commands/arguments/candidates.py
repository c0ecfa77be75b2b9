"""Candidates for completion: options of fedexp and those of the user's `--config-dir`, and folders of runs."""

from argparse import Namespace
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from fedexp.commands.arguments.parsing import complete_folder
from fedexp.config import catalog, roles
from fedexp.config.launchers import HYDRA_OPTIONS
from fedexp.config.location import conf_dir
from fedexp.core.errors import ConfigError
from fedexp.files.atomic import display_path
from fedexp.run.folders import OUTPUTS

RUN_PATTERNS = (
    *("*/*/config.json", "multirun/*/*/*/config.json", "multirun/*/*/multirun.yaml", "search/*/*/search.yaml"),
    "contest/*/contest.yaml",
)


def groups(config_dir: Path | None = None) -> list[str]:
    """The groups that hold an option."""
    return sorted({group for conf in _conf_folders(config_dir) for group in catalog.groups(conf)})


def options(group: str, config_dir: Path | None = None) -> list[str]:
    """The options of a group."""
    return sorted({option for conf in _conf_folders(config_dir) for option in catalog.options(conf, group)})


def source_folder(group: str, option: str, config_dir: Path | None = None) -> Path:
    """The configs folder that an option comes from.

    Raises:
        ConfigError: it is the user's own, and cannot be read.
    """
    conf = next(conf for conf in _conf_folders(config_dir) if option in catalog.options(conf, group))
    if conf == config_dir:
        _demand_readable(conf / group / f"{option}.yaml")
    return conf


def _demand_readable(path: Path) -> None:
    from yaml import YAMLError

    try:
        content = catalog.load(path)
    except (YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{display_path(path)} cannot be read as YAML: {error}; mend it") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{display_path(path)} must hold keys and values, got {content!r}; mend it")


def _conf_folders(config_dir: Path | None) -> list[Path]:
    return [*([config_dir] if config_dir else []), *roles.option_folders(), conf_dir()]


def complete_override(arguments: Namespace, word: str) -> list[str]:
    """Completes a word of `fedexp run`: a group, its options, or one more step of a dotted key."""
    group, equal, _ = word.partition("=")
    if equal:
        config_dir = arguments.config_dir
        return complete_list(
            HYDRA_OPTIONS.get(group, options(group, config_dir) if group in groups(config_dir) else []), word
        )
    head = word[: word.rfind(".") + 1]
    steps = (key.removeprefix(head).partition(".") for key in _keys(arguments) if key.startswith(head))
    names = (f"{group}=" for group in (*groups(arguments.config_dir), *HYDRA_OPTIONS))
    return [*names, *(f"{head}{step}{dot or '='}" for step, dot, _ in steps)]


def _keys(arguments: Namespace) -> list[str]:
    """The dotted keys of the run and of the options chosen so far."""
    known_groups, user_folders = groups(arguments.config_dir), _conf_folders(arguments.config_dir)[:-1]
    chosen = dict(word.split("=", 1) for word in arguments.overrides if word.partition("=")[0] in known_groups)
    pairs = [
        (conf, *choice)
        for conf in user_folders
        for choice in chosen.items()
        if choice[1] in catalog.options(conf, choice[0])
    ]
    return [*catalog.keys(conf_dir(), chosen), *chain(*(catalog.own_keys(*pair) for pair in pairs))]


def complete_run_folder(word: str) -> list[str]:
    """Completes the folder of a run, a sweep or a search below `outputs/`; else any folder, one level at a time."""
    folders = [str(path.parent) for pattern in RUN_PATTERNS for path in OUTPUTS.glob(pattern)]
    folders += [str(OUTPUTS / "latest")] if (OUTPUTS / "latest").exists() else []
    return [name for name in folders if name.startswith(word)] or complete_folder(word)


def complete_list(names: Iterable[str], typed: str) -> list[str]:
    """Completes the last of several names separated by commas, also behind KEY=."""
    done = typed[: max(typed.rfind(","), typed.find("=")) + 1]
    return [f"{done}{name}" for name in names]
