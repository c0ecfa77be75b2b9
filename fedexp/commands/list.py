"""Show what can be chosen: groups, the options of a group, the keys of an option.

* marks the default. E.g. fedexp list; fedexp list selector; fedexp list selector greedyfed; fedexp list scenario
"""

import textwrap
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedexp.commands.arguments import candidates, entries
from fedexp.commands.arguments.json_document import add_json_flag, json_document
from fedexp.commands.arguments.parsing import Parser
from fedexp.config import catalog, roles
from fedexp.config.location import conf_dir
from fedexp.config.override_text import plain_text
from fedexp.config.vocabulary.hints import option_hint, pairs_called
from fedexp.core.errors import ConfigError
from fedexp.files.atomic import display_path
from fedexp.process.terminal import print_text

RUN = """

Groups; choose with group=option (* marks the default):
{groups}
Keys of the run; change with key=value (`fedexp list GROUP OPTION` shows those of an option, --cfg job all of a run):
{keys}
Sweeps: hydra/launcher=joblib, submitit_local, submitit_slurm or ray runs several points at once;
  hydra/sweeper=one_at_a_time varies one key at a time around the config.
E.g. fedexp run -m seed=0,1 model=mlp,keras_cnn

Describe options: fedexp list GROUP      Continue a run: fedexp resume RUN_DIR
FEDEXP_DEBUG=1 shows the traceback of an error.
"""


def build_parser() -> Parser:
    """Declares at most two words: a group, and one of its options."""
    parser = Parser("list [GROUP [OPTION]] [--config-dir DIR] [--json]", __doc__)
    parser.words("names", _completions)
    parser.add_config_dir("show your own options in DIR too, marked +")
    add_json_flag(parser)
    return parser


def act(words: list[str]) -> int:
    """Shows all groups, the options of one, or the keys of an option."""
    arguments = build_parser().read(words)
    names = arguments.names[0].split("=") if len(arguments.names) == 1 else arguments.names
    if len(names) > 2:
        raise ConfigError(f"list shows a group or one of its options, got {len(names)} words: {' '.join(names)}")
    show = (describe_groups, describe_group, describe_option)[len(names)]
    text = show(conf_dir(), *names, config_dir=arguments.config_dir)
    with json_document(arguments.json) as content:
        if arguments.json:
            list_entries = (entries.groups, entries.options, entries.keys)[len(names)]
            content |= list_entries(*names, config_dir=arguments.config_dir)
        else:
            print_text(text)
    return 0


def _completions(arguments: Namespace, _: str) -> list[str]:
    if len(arguments.names) == 1:
        return candidates.options(arguments.names[0], arguments.config_dir)
    return [] if arguments.names else [*candidates.groups(arguments.config_dir), *catalog.sections(conf_dir())]


def describe_groups(conf: Path, config_dir: Path | None = None) -> str:
    """Describes every group: what it decides, and its options, the default first."""
    rows = []
    purposes = catalog.purposes(conf)
    installed = {role.name: role.purpose for role in roles.installed_roles()}
    purposes |= {group: installed.get(group, "") for group in candidates.groups(config_dir) if group not in purposes}
    width = max(map(len, purposes), default=0)
    indent = " " * (width + 4)
    for group, purpose in purposes.items():
        rows.append(f"  {group:{width}}  {purpose}".rstrip())
        names = " ".join(marked_options(conf, group, config_dir))
        rows.append(textwrap.fill(names, 110, initial_indent=indent, subsequent_indent=indent))
    return "".join(f"{row}\n" for row in rows) + _legend(config_dir)


def marked_options(conf: Path, group: str, config_dir: Path | None = None) -> list[str]:
    """The options of a group, the default first with a star; a plus marks the user's own."""
    user_options = catalog.options(config_dir, group) if config_dir else []
    defaults = {role.name: role.default for role in roles.installed_roles()} | catalog.defaults(conf)
    chosen = defaults.get(group)
    names = sorted(candidates.options(group, config_dir), key=lambda name: (name != chosen, name))
    return [f"{name}{'*' if name == chosen else ''}{'+' if name in user_options else ''}" for name in names]


def describe_group(conf: Path, group: str, config_dir: Path | None = None) -> str:
    """Describes every option of a group, or every key of a section of the config that has no options."""
    if group in catalog.sections(conf):
        return _align_keys(catalog.section_keys(conf, group))
    _demand_group(group, config_dir)
    names = {name.rstrip("*+"): name for name in sorted(marked_options(conf, group, config_dir))}
    width = max(map(len, names.values()))
    descriptions = {
        name: catalog.description(candidates.source_folder(group, name, config_dir), group, name) for name in names
    }
    rows = (f"  {names[name]:{width}}  {description}".rstrip() for name, description in descriptions.items())
    example = f"The keys of one: fedexp list {group} {next(iter(names))}\n"
    return "".join(f"{row}\n" for row in rows) + _legend(config_dir) + f"\n{example}"


def _legend(config_dir: Path | None) -> str:
    return f"\n+ lies in {display_path(config_dir)}\n" if config_dir else ""


def describe_option(conf: Path, group: str, option: str, config_dir: Path | None = None) -> str:
    """Describes an option: what it does, and every key it sets, with its value and the file's comment on it."""
    _demand_group(group, config_dir)
    names = candidates.options(group, config_dir)
    if option not in names:
        raise ConfigError(f"unknown option of {group} {option}{option_hint(group, option, names)}")
    conf = candidates.source_folder(group, option, config_dir)
    return f"{group}={option}: {catalog.description(conf, group, option)}\n" + _align(option_keys(conf, group, option))


def option_keys(conf: Path, group: str, option: str) -> dict[str, str]:
    """The words for what an option chooses, sets and sweeps, each with the comment in its file."""
    path = conf / group / f"{option}.yaml"
    comments = catalog.comments(path)
    prefix = "" if catalog.is_global(path) else f"{group}."
    keys = catalog.dotted_values(catalog.load(path))
    chosen = {f"{chosen_group}={name}": "" for chosen_group, name in catalog.choices(path).items()}
    return (
        chosen
        | {
            f"{prefix}{key}={plain_text(value)}": comments.get(key, "")
            for key, value in keys.items()
            if not key.startswith("hydra.")
        }
        | {f"{key}={values}": "swept with -m" for key, values in catalog.sweep(path).items()}
    )


def _demand_group(name: str, config_dir: Path | None) -> None:
    """Refuses what is no group; of an option it says whose it is, as a group is what people leave out."""
    groups = candidates.groups(config_dir)
    if name in groups:
        return
    if matches := pairs_called(name, {group: candidates.options(group, config_dir) for group in groups}):
        commands = " or ".join(f"fedexp list {group} {option}" for group, option in matches)
        owners = " and ".join(group for group, _ in matches)
        raise ConfigError(f"{name} is no group, but an option of {owners}; its keys: {commands}")
    sections = catalog.sections(conf_dir())
    if name in sections:
        raise ConfigError(f"{name} has keys and no options; fedexp list {name} shows them")
    raise ConfigError(f"unknown group {name}{option_hint('', name, [*groups, *sections])}")


def _align(rows: Mapping[str, str]) -> str:
    """Words and their descriptions in two columns; very long words do not move the second column."""
    width = min(max(map(len, rows), default=0), 44)
    return "".join(f"  {word:{width}}  {description}".rstrip() + "\n" for word, description in rows.items())


def _align_keys(keys: Mapping[str, tuple[Any, str]]) -> str:
    return _align({f"{key}={plain_text(value)}": text for key, (value, text) in keys.items()})


def run_help(conf: Path) -> str:
    """The groups and keys that `fedexp run` understands."""
    return RUN.format(groups=describe_groups(conf), keys=_align_keys(catalog.run_keys(conf)))
