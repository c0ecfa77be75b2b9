"""The text that `fedexp list` and `fedexp run --help` show."""

import textwrap
from collections.abc import Mapping
from pathlib import Path

from fedexp.commands import offered
from fedexp.config import catalog, roles
from fedexp.config.override_text import plain_text
from fedexp.core.errors import ConfigError, nearest
from fedexp.core.files import shown

RUN = """

Groups; choose with group=option (* marks the default):
{groups}
Keys of the run; change with key=value (`fedexp list GROUP OPTION` shows those of an option, --cfg job all of a run):
{keys}
Sweeps: hydra/launcher=joblib, submitit_local, submitit_slurm or ray runs several points at once;
  hydra/sweeper=one_at_a_time varies one key at a time around the config.
E.g. fedexp run -m seed=0,1 model=mlp,keras_cnn

Describe options: fedexp list GROUP      Continue a run: fedexp resume RUN_DIR
HYDRA_FULL_ERROR=1 shows the traceback of an error.
"""


def all_groups(conf: Path, own: Path | None = None) -> str:
    """Describes every group: what it decides, and its options, the default first."""
    rows = []
    told = catalog.purposes(conf)
    installed = {role.name: role.purpose for role in roles.installed()}
    told |= {group: installed.get(group, "") for group in offered.groups(own) if group not in told}
    width = max(map(len, told), default=0)
    indent = " " * (width + 4)
    for group, purpose in told.items():
        rows.append(f"  {group:{width}}  {purpose}".rstrip())
        names = " ".join(marked(conf, group, own))
        rows.append(textwrap.fill(names, 110, initial_indent=indent, subsequent_indent=indent))
    return "".join(f"{row}\n" for row in rows) + _legend(own)


def marked(conf: Path, group: str, own: Path | None = None) -> list[str]:
    """The options of a group, the default first with a star; a plus marks the user's own."""
    mine = catalog.options(own, group) if own else []
    defaults = {role.name: role.default for role in roles.installed()} | catalog.defaults(conf)
    chosen = defaults.get(group)
    names = sorted(offered.options(group, own), key=lambda name: (name != chosen, name))
    return [f"{name}{'*' if name == chosen else ''}{'+' if name in mine else ''}" for name in names]


def one_group(conf: Path, group: str, own: Path | None = None) -> str:
    """Describes every option of a group."""
    _known(group, "group", offered.groups(own))
    names = {name.rstrip("*+"): name for name in sorted(marked(conf, group, own))}
    width = max(map(len, names.values()))
    told = {name: catalog.description(offered.place(group, name, own), group, name) for name in names}
    rows = (f"  {names[name]:{width}}  {said}".rstrip() for name, said in told.items())
    example = f"The keys of one: fedexp list {group} {next(iter(names))}\n"
    return "".join(f"{row}\n" for row in rows) + _legend(own) + f"\n{example}"


def _legend(own: Path | None) -> str:
    return f"\n+ lies in {shown(own)}\n" if own else ""


def one_option(conf: Path, group: str, option: str, own: Path | None = None) -> str:
    """Describes an option: what it does, and every key it sets, with its value and the file's comment on it."""
    _known(group, "group", offered.groups(own))
    _known(option, f"option of {group}", offered.options(group, own))
    conf = offered.place(group, option, own)
    return f"{group}={option}: {catalog.description(conf, group, option)}\n" + _aligned(own_keys(conf, group, option))


def own_keys(conf: Path, group: str, option: str) -> dict[str, str]:
    """The words for what an option chooses and sets, each with the comment in its file; without Hydra's own keys."""
    path = conf / group / f"{option}.yaml"
    said = catalog.comments(path)
    prefix = "" if catalog.is_global(path) else f"{group}."
    keys = catalog.leaves(catalog.load(path))
    chosen = {f"{other}={name}": "" for other, name in catalog.choices(path).items()}
    return chosen | {
        f"{prefix}{key}={plain_text(value)}": said.get(key, "") for key, value in keys.items() if "hydra." not in key
    }


def _known(name: str, kind: str, names: list[str]) -> None:
    if name not in names:
        raise ConfigError(f"unknown {kind} {name}; {nearest(name, names)}")


def _aligned(rows: Mapping[str, str]) -> str:
    """Words and their descriptions in two columns; very long words do not move the second column."""
    width = min(max(map(len, rows), default=0), 44)
    return "".join(f"  {word:{width}}  {said}".rstrip() + "\n" for word, said in rows.items())


def run_help(conf: Path) -> str:
    """The groups and keys that `fedexp run` understands."""
    groups = catalog.groups(conf)
    said = catalog.comments(conf / "config.yaml")
    keys = {key: value for key, value in catalog.keys(conf, {}).items() if key.partition(".")[0] not in groups}
    rows = _aligned({f"{key}={plain_text(value)}": said.get(key, "") for key, value in keys.items()})
    return RUN.format(groups=all_groups(conf), keys=rows)
