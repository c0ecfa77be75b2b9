"""What sweeps were asked for, from their `multirun.yaml`: the command, and the values that its words list.

Without Hydra only plain lists can be read (`aggregator=fedavg,krum`, `seed=range(0,5)`); nothing is said of others.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedexp.config import saved_config
from fedexp.config.override_text import short_text
from fedexp.core.errors import ConfigError
from fedexp.core.join_first import join_first
from fedexp.core.nested import lookup
from fedexp.files.untrusted_yaml import read_yaml
from fedexp.files.url_credentials import without_password

NAME, CONTEST = "multirun.yaml", "contest.yaml"
_LIST = re.compile(r"[\w./+-]+(,[\w./+-]+)+")
_RANGE = re.compile(r"range\((?:(\d{1,15}),)?(\d{1,15})\)")
_CHOOSING = ("hydra/sweeper", "hydra.sweeper")
_MOST = 10_000  # values of a list or range
_LISTED = 3  # commands


@dataclass(frozen=True)
class Planned:
    """The values of each key of several sweeps, as tables write them; `seeds` is the number of seeds of each point."""

    values: dict[str, tuple[str, ...]] = field(default_factory=dict)
    seeds: int = 0


def planned_values(folders: Iterable[Path]) -> Planned:
    """What the sweeps planned that these run folders belong to."""
    values: dict[str, tuple[str, ...]] = {}
    seeds = 0
    for sweep in _sweeps(folders):
        words = _words(sweep)
        if any(word.startswith(("points=", "hydra")) for word in words):  # not every value meets every other
            continue
        listed = {key: _values(text) for key, _, text in (word.partition("=") for word in words)}
        seeds = max(seeds, len(listed.pop("seed", ())))
        for key, texts in listed.items():
            values[key] = tuple(dict.fromkeys([*values.get(key, ()), *texts]))
    return Planned({key: texts for key, texts in values.items() if texts}, seeds)


def commands(folders: Sequence[Path]) -> str:
    """The commands that made these run folders, the first of them if there are many; empty where nobody knows."""
    texts: dict[str, None] = {}
    for origin in dict.fromkeys(next(iter(_sweeps([folder])), folder) for folder in folders):
        is_sweep = (origin / NAME).is_file()
        words = _words(origin) if is_sweep else _run_words(origin)
        if words:
            texts[shlex.join(["fedexp", "run", *(["-m"] if is_sweep else []), *words])] = None
    return join_first([*texts], _LISTED, "; ")


def contest_text(folders: Sequence[Path]) -> str:
    """How the settings of these run folders were chosen, if a contest has run them all; else empty."""
    plans = {folder.absolute().parents[2] / CONTEST for folder in folders if len(folder.absolute().parents) > 2}
    if len(plans) != 1 or not (path := plans.pop()).is_file():
        return ""
    try:
        plan = read_yaml(path)
    except ConfigError:
        return ""
    spaces = [without_password(word) for word in _texts(lookup(plan, "words")) if "(" in word]
    trials, searched = lookup(plan, "trials"), f" over {', '.join(spaces)}" if spaces else ""
    if type(trials) is not int:
        return ""
    return (
        f"by fedexp contest, {trials} trials of each method on validation data{searched}; none of them saw these seeds"
    )


def _sweeps(folders: Iterable[Path]) -> list[Path]:
    parents = dict.fromkeys(parent for folder in folders for parent in folder.absolute().parents[:2])
    return [parent for parent in parents if (parent / NAME).is_file()]


def _words(sweep: Path) -> list[str]:
    """What was typed, and of Hydra's words those that choose the points; nothing where the file is damaged."""
    try:
        saved = read_yaml(sweep / NAME)
    except ConfigError:
        return []
    task, hydra = (_texts(lookup(saved, f"hydra.overrides.{name}")) for name in ("task", "hydra"))
    return [*map(without_password, task), *(word for word in hydra if word.startswith(_CHOOSING))]


def _texts(node: Any) -> list[str]:
    return [word for word in node if isinstance(word, str)] if isinstance(node, list) else []


def _run_words(folder: Path) -> list[str]:
    return saved_config.read(folder).overrides if saved_config.exists(folder) else []


def _values(text: str) -> tuple[str, ...]:
    """The values of a plain list or range as texts; none of anything else."""
    if span := _RANGE.fullmatch(text):
        return tuple(map(str, range(int(span[1] or 0), int(span[2]))[:_MOST]))
    return tuple(map(_table_text, text.split(",", _MOST)[:_MOST])) if _LIST.fullmatch(text) else ()


def _table_text(text: str) -> str:
    """A value as it stands in tables: 0.10 as 0.1."""
    try:
        return text if text.lstrip("+-").isdigit() else short_text(float(text))
    except ValueError:
        return text
