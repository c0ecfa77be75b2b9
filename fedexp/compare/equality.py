"""What must be equal on both sides of a pair, so that a difference comes from the methods: data, split, budget.

Runs leave digests of their dataset and their split in summary.json. Older ones are compared by federation.csv (how many
examples of each class every client holds) and by the config, and the output says so.
"""

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from fedexp.config import roles
from fedexp.config.override_text import short_text
from fedexp.core.errors import ConfigError
from fedexp.core.files import shown
from fedexp.report.runs import Run

DATA = roles.names(about_data=True)
BUDGET = ("rounds", "scenario.clients", "scenario.participants", "scenario.public_fraction", "evaluation.every")
WORK = {"local.epochs": "epochs", "local.steps": "steps", "local.batch_size": "steps"}  # named as in --unequal
UNEQUAL = ("epochs", "steps", "megabytes")
NEARLY = 0.01  # share by which the megabytes of a pair may differ


def data_config(run: Run) -> dict[str, Any]:
    """The options and keys of dataset and federation, except those that belong to the budget."""
    chosen = {name: run.choices.get(name) for name in DATA}
    keys = {key: value for key, value in run.config.items() if key.startswith(tuple(f"{name}." for name in DATA))}
    return {**chosen, **{key: value for key, value in keys.items() if key != "federation.clients"}}


def demand(a: Run, b: Run, unequal: Collection[str] = ()) -> None:
    """Refuses a pair whose budgets, data or splits differ; `unequal` names those of `UNEQUAL` that may.

    Raises:
        ConfigError: names the two folders, what differs, and what to do.
    """
    spent = [
        (f"their budgets differ, {told}", f"run both with the same, or accept it with --unequal {name}")
        for name, told in _spent(a, b)
        if name not in unequal
    ]
    for what, cure in (*_budget(a, b), *_data(a, b), *_split(a, b), *spent):
        raise ConfigError(f"{shown(a.folder)} and {shown(b.folder)} cannot be compared: {what}; {cure}")


def doubts(a: Run, b: Run) -> list[str]:
    """Differences in this pair that were accepted."""
    return [f"unequal {name}, accepted by --unequal: {told}" for name, told in _spent(a, b)]


def _budget(a: Run, b: Run) -> Iterator[tuple[str, str]]:
    stops = [key for key in dict.fromkeys([*a.config, *b.config]) if key.startswith("stop.")]
    for key in (*BUDGET, *stops):
        ours, theirs = a.config.get(key), b.config.get(key)
        if key == "scenario.public_fraction":
            ours, theirs = ours or 0.0, theirs or 0.0
        if ours != theirs:
            yield (
                f"their budgets differ, {key} is {short_text(ours)} and {short_text(theirs)}",
                f"run both with the same {key}",
            )


def _spent(a: Run, b: Run) -> Iterator[tuple[str, str]]:
    """Which of `UNEQUAL` differ, and how: work by the config, megabytes by the tables if both ran all rounds."""
    for key, name in WORK.items():
        ours, theirs = a.config.get(key), b.config.get(key)
        if ours != theirs:
            yield name, f"{key} is {short_text(ours)} and {short_text(theirs)}"
    ours, theirs = (_megabytes(run) for run in (a, b))
    if len(a.rounds) == len(b.rounds) and abs(ours - theirs) > NEARLY * max(ours, theirs):
        yield "megabytes", f"{ours:,.4g} and {theirs:,.4g} MB were sent"


def _megabytes(run: Run) -> float:
    return float(np.nansum(run.column("mb_down")) + np.nansum(run.column("mb_up")))


def _data(a: Run, b: Run) -> Iterator[tuple[str, str]]:
    if reason := _unequal(a, b, "data_sha256"):
        yield f"their data differ, {reason}", "run both on the same files and the same code"


def _split(a: Run, b: Run) -> Iterator[tuple[str, str]]:
    if reason := _unequal(a, b, "split_sha256"):
        yield f"their clients hold different examples, {reason}", _cure(a, b)


def _cure(a: Run, b: Run) -> str:
    """What to do about the likeliest reason why the same seed gave two splits."""
    if not (a.config.get("evaluation.validation") and b.config.get("evaluation.validation")):
        return (
            "if a part of one of them (a selector, an aggregator, a stop rule) takes validation data off the training "
            "data, set evaluation.validation=true for all"
        )
    return "run both with the same settings of evaluation, scenario and audit, and the same code"


def _unequal(a: Run, b: Run, key: str) -> str:
    """What the digests of two summaries say, in words; empty where they are equal."""
    ours, theirs = ((run.summary or {}).get(key) for run in (a, b))
    if ours is None or theirs is None:
        return f"or nobody can tell: a summary.json has no {key}"
    return "" if ours == theirs else f"{key} in summary.json says so"
