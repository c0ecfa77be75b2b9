"""What `fedexp list` and `fedexp run --help` show."""

import textwrap
from pathlib import Path

from fedexp import catalog
from fedexp.spec import ConfigError, nearest

RUN_HELP = """\
usage: fedexp run [group=option ...] [key=value ...] [-m] [--cfg job]

Groups; choose with group=option (the default stands first):
{groups}
Keys; change with key=value (`fedexp run --cfg job` shows all of them, also those of the chosen options):
{keys}
Flags:
  -m, --multirun            run every combination of comma-separated values: fedexp run -m seed=0,1 model=mlp,keras_cnn
  -c, --cfg job|hydra|all   show the composed config instead of running it
      --resolve             with --cfg: show values instead of ${{interpolations}}
  -p, --package KEY         with --cfg: show only what lies under this key
  -i, --info [TOPIC]        show how Hydra composes: all, config, defaults, defaults-tree, plugins, searchpath
  -cd, --config-dir DIR     look for your own options and experiments in DIR too
  -cn, --config-name NAME   start from another root config than `config`

Describe an option: fedexp list GROUP      Continue a run: fedexp resume RUN_DIR
HYDRA_FULL_ERROR=1 shows the traceback of an error.
"""


def all_groups(conf: Path) -> str:
    """Every group on a line, its default option first."""
    rows = []
    width = max(map(len, catalog.groups(conf)), default=0)
    chosen = catalog.defaults(conf)
    for group in catalog.groups(conf):
        names = catalog.options(conf, group)
        if chosen.get(group) in names:
            names = [f"{chosen[group]}*", *(name for name in names if name != chosen[group])]
        indent = " " * (width + 4)
        rows.append(
            textwrap.fill(" ".join(names), 110, initial_indent=f"  {group:{width}}  ", subsequent_indent=indent)
        )
    return "".join(f"{row}\n" for row in rows)


def one_group(conf: Path, group: str) -> str:
    """Every option of a group with its description."""
    known = catalog.groups(conf)
    if group not in known:
        raise ConfigError(f"unknown group {group}; {nearest(group, known)}")
    names, chosen = catalog.options(conf, group), catalog.defaults(conf).get(group)
    marked = {name: f"{name}*" if name == chosen else name for name in names}
    width = max(map(len, marked.values()))
    rows = (f"  {marked[name]:{width}}  {catalog.description(conf, group, name)}".rstrip() for name in names)
    return "".join(f"{row}\n" for row in rows)


def run_help(conf: Path) -> str:
    """Everything that `fedexp run` understands."""
    keys = [f"  {key}={_written(value)}\n" for key, value in catalog.keys(conf, {}).items() if not _in_group(conf, key)]
    return RUN_HELP.format(groups=all_groups(conf), keys="".join(keys))


def _in_group(conf: Path, key: str) -> bool:
    return key.partition(".")[0] in catalog.groups(conf)


def _written(value: object) -> str:
    """A value as the command line wants it."""
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return str(value)
