"""What `fedexp list` and `fedexp run --help` show."""

import textwrap
from collections.abc import Mapping
from pathlib import Path

from fedexp.config import catalog
from fedexp.config.override_text import plain_text
from fedexp.core.errors import ConfigError, nearest

RUN_HELP = """\
usage: fedexp run [group=option ...] [key=value ...] [-m] [--cfg job]

Groups; choose with group=option (* marks the default):
{groups}
Keys of the run; change with key=value (`fedexp list GROUP OPTION` shows those of an option, --cfg job all of a run):
{keys}
Sweeps: hydra/launcher=joblib, submitit_local, submitit_slurm or ray runs several points at once;
  hydra/sweeper=one_at_a_time varies one key at a time around the config.
Flags:
  -m, --multirun            run every combination of comma-separated values: fedexp run -m seed=0,1 model=mlp,keras_cnn
  -c, --cfg job|hydra|all   show the composed config instead of running it
      --resolve             with --cfg: show values instead of ${{interpolations}}
  -p, --package KEY         with --cfg: show only what lies under this key
  -i, --info [TOPIC]        show how Hydra composes: all, config, defaults, defaults-tree, plugins, searchpath
  -cd, --config-dir DIR     look for your own options and experiments in DIR too
  -cn, --config-name NAME   start from another root config than `config`

Describe options: fedexp list GROUP      Continue a run: fedexp resume RUN_DIR
HYDRA_FULL_ERROR=1 shows the traceback of an error.
"""


def all_groups(conf: Path) -> str:
    """Every group: what it decides, and its options, the default first."""
    rows = []
    told = catalog.purposes(conf)
    width = max(map(len, told), default=0)
    indent = " " * (width + 4)
    for group, purpose in told.items():
        rows.append(f"  {group:{width}}  {purpose}".rstrip())
        rows.append(textwrap.fill(" ".join(marked(conf, group)), 110, initial_indent=indent, subsequent_indent=indent))
    return "".join(f"{row}\n" for row in rows)


def marked(conf: Path, group: str) -> list[str]:
    """The options of a group, the default first with a star."""
    names, chosen = catalog.options(conf, group), catalog.defaults(conf).get(group)
    if chosen not in names:
        return names
    return [f"{chosen}*", *(name for name in names if name != chosen)]


def one_group(conf: Path, group: str) -> str:
    """Every option of a group with its description."""
    _known(group, "group", list(catalog.purposes(conf)))
    names = sorted(marked(conf, group))
    width = max(map(len, names))
    rows = (f"  {name:{width}}  {catalog.description(conf, group, name.rstrip('*'))}".rstrip() for name in names)
    return "".join(f"{row}\n" for row in rows) + f"\nThe keys of one: fedexp list {group} {names[0].rstrip('*')}\n"


def one_option(conf: Path, group: str, option: str) -> str:
    """What an option does, and every key it sets, with its value and what the file says of it."""
    _known(group, "group", list(catalog.purposes(conf)))
    _known(option, f"option of {group}", catalog.options(conf, group))
    return f"{group}={option}: {catalog.description(conf, group, option)}\n" + _aligned(own_keys(conf, group, option))


def own_keys(conf: Path, group: str, option: str) -> dict[str, str]:
    """What an option chooses and sets, as words with what its file says of them; without the keys of Hydra itself."""
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
    """Words with what is said of them, which begins in one column; very long words do not push it away."""
    width = min(max(map(len, rows), default=0), 44)
    return "".join(f"  {word:{width}}  {said}".rstrip() + "\n" for word, said in rows.items())


def run_help(conf: Path) -> str:
    """Everything that `fedexp run` understands."""
    groups = catalog.groups(conf)
    said = catalog.comments(conf / "config.yaml")
    keys = {key: value for key, value in catalog.keys(conf, {}).items() if key.partition(".")[0] not in groups}
    rows = _aligned({f"{key}={plain_text(value)}": said.get(key, "") for key, value in keys.items()})
    return RUN_HELP.format(groups=all_groups(conf), keys=rows)
