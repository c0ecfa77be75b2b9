"""Candidates for completion: options of fedexp and those of the user's `--config-dir`, and folders of runs."""

from argparse import Namespace
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from fedexp.commands.parsing import below
from fedexp.config import catalog, roles
from fedexp.config.location import conf_dir
from fedexp.core.errors import ConfigError
from fedexp.core.files import shown
from fedexp.run.folders import OUTPUTS

HYDRAS = {  # no YAML files of ours: a plugin of Hydra's may bring options of the same names
    "hydra/launcher": ["basic", "joblib", "ray", "submitit_local", "submitit_slurm"],
    "hydra/sweeper": ["basic", "one_at_a_time"],
}
BEGUN = ("*/*/.hydra", "multirun/*/*/*/.hydra", "multirun/*/*/multirun.yaml", "search/*/*/search.yaml")


def groups(own: Path | None = None) -> list[str]:
    """The groups that hold an option."""
    return sorted({group for conf in _folders(own) for group in catalog.groups(conf)})


def options(group: str, own: Path | None = None) -> list[str]:
    """The options of a group."""
    return sorted({option for conf in _folders(own) for option in catalog.options(conf, group)})


def place(group: str, option: str, own: Path | None = None) -> Path:
    """The configs folder that an option comes from.

    Raises:
        ConfigError: it is the user's own, and cannot be read.
    """
    conf = next(conf for conf in _folders(own) if option in catalog.options(conf, group))
    if conf == own:
        _demand_readable(conf / group / f"{option}.yaml")
    return conf


def _demand_readable(path: Path) -> None:
    from yaml import YAMLError

    try:
        found = catalog.load(path)
    except (YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{shown(path)} cannot be read as YAML: {error}; mend it") from error
    if not isinstance(found, dict):
        raise ConfigError(f"{shown(path)} must hold keys and values, got {found!r}; mend it")


def _folders(own: Path | None) -> list[Path]:
    return [*([own] if own else []), *roles.option_folders(), conf_dir()]


def overrides(asked: Namespace, word: str) -> list[str]:
    """Completes a word of `fedexp run`: a group, its options, or one more step of a dotted key."""
    group, equal, _ = word.partition("=")
    if equal:
        own = asked.config_dir
        return listed(HYDRAS.get(group, options(group, own) if group in groups(own) else []), word)
    head = word[: word.rfind(".") + 1]
    steps = (key.removeprefix(head).partition(".") for key in _keys(asked) if key.startswith(head))
    names = (f"{group}=" for group in (*groups(asked.config_dir), *HYDRAS))
    return [*names, *(f"{head}{step}{dot or '='}" for step, dot, _ in steps)]


def _keys(asked: Namespace) -> list[str]:
    """The dotted keys of the run and of the options chosen so far."""
    known, others = groups(asked.config_dir), _folders(asked.config_dir)[:-1]
    chosen = dict(word.split("=", 1) for word in asked.overrides if word.partition("=")[0] in known)
    pairs = [(conf, *one) for conf in others for one in chosen.items() if one[1] in catalog.options(conf, one[0])]
    return [*catalog.keys(conf_dir(), chosen), *chain(*(catalog.own_keys(*pair) for pair in pairs))]


def begun(word: str) -> list[str]:
    """Completes the folder of a run, a sweep or a search below `outputs/`; else any folder, one level at a time."""
    found = [str(path.parent) for pattern in BEGUN for path in OUTPUTS.glob(pattern)]
    found += [str(OUTPUTS / "latest")] if (OUTPUTS / "latest").exists() else []
    return [name for name in found if name.startswith(word)] or below(word)


def listed(names: Iterable[str], typed: str) -> list[str]:
    """Completes the last of several names separated by commas, also behind KEY=."""
    done = typed[: max(typed.rfind(","), typed.find("=")) + 1]
    return [f"{done}{name}" for name in names]
