"""What must be equal on both sides of a pair, so that a difference comes from the methods: data, split, budget.

Runs leave digests of their dataset and their split in summary.json. Older ones are compared by federation.csv (how many
examples of each class every client holds) and by the config, and the output says so.

Local, central and federated training of the same data may always be compared. Who trains on what, and what is sent, is
what sets them apart: it is told and not refused.
"""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fedexp.config import roles
from fedexp.config.override_text import short_text
from fedexp.core.errors import ConfigError
from fedexp.files.atomic import display_path
from fedexp.report.read.idle import SOURCES, refers_to
from fedexp.report.read.runs import Run

DATA = roles.role_names(about_data=True)
BUDGET = (
    *("rounds", "scenario.clients", "scenario.participants", "scenario.public_fraction"),
    *("evaluation.every", "evaluation.every_s"),
)
WORK = {"local.epochs": "epochs", "local.steps": "steps", "local.batch_size": "steps"}  # named as in --unequal
HELD_OUT = (  # keys that take examples away from training
    "evaluation.personal_fraction",
    "evaluation.unseen_fraction",
    "evaluation.own_test",
    "scenario.public_fraction",
)
UNEQUAL = ("epochs", "steps", "megabytes")
CLIENTS = ("scenario.clients", "scenario.participants")  # of the budget, what is about a federation alone
SPLIT = (
    *("evaluation.personal_fraction", "evaluation.personal_split"),
    *("evaluation.own_test", "evaluation.validation", "evaluation.validation_at", "scenario.public_fraction"),
)
MEGABYTES_TOLERANCE = 0.01  # share by which the megabytes of a pair may differ


class _Setting(NamedTuple):
    """A key of a config and its value."""

    key: str
    value: Any


def training(run: Run) -> str:
    """How a run trained: federated, local (each client alone) or central (one with all examples)."""
    if run.choices.get("federation") == "central":
        return "central"
    return str(run.config.get("scenario.training") or "federated")


def data_config(run: Run, roles_about_data: Collection[str] = DATA) -> dict[str, Any]:
    """The options and keys of dataset and federation, except those that belong to the budget."""
    chosen = {name: run.choices.get(name) for name in roles_about_data}
    prefixes = tuple(f"{name}." for name in roles_about_data)
    keys = {key: value for key, value in run.config.items() if key.startswith(prefixes)}
    return {**chosen, **{key: value for key, value in keys.items() if key != "federation.clients"}}


def have_same_data(a: Run, b: Run) -> bool:
    """Whether seed, dataset and federation are the same; `federation=central` holds what any federation divides."""
    is_whole = "central" in (a.choices.get("federation"), b.choices.get("federation"))
    compared = [name for name in DATA if name != "federation"] if is_whole else DATA
    return a.seed == b.seed and data_config(a, compared) == data_config(b, compared)


def have_same_split(a: Run, b: Run) -> bool:
    """Whether the clients of two runs train on the same examples, and so hold out the same."""
    return not _digest_difference(a, b, "split_sha256")


def refuse_shared_runs(pairs: Sequence[tuple[Run, Run]], names: tuple[str, str]) -> None:
    """Raises ConfigError where a run is in several pairs: these would not be independent."""
    for side, partner_side in ((0, 1), (1, 0)):
        partners: dict[Path, list[Run]] = {}
        for pair in pairs:
            partners.setdefault(pair[side].folder, []).append(pair[partner_side])
        for folder, runs in partners.items():
            if len(runs) > 1:
                federations = ", ".join(dict.fromkeys(str(run.choices.get("federation")) for run in runs))
                raise ConfigError(
                    f"{display_path(folder)} of {names[side]} can have one partner, since pairs that share a run are "
                    f"not independent, got {len(runs)} (federation {federations}); pick one by KEY=VALUE, e.g. "
                    f"federation={runs[0].choices.get('federation')}"
                )


def require_comparable(a: Run, b: Run, unequal: Collection[str] = ()) -> None:
    """Refuses a pair whose budgets, data or splits differ; `unequal` names those of `UNEQUAL` that may.

    Raises:
        ConfigError: names the two folders, what differs, and what to do.
    """
    spent = [
        (f"their budgets differ, {difference}", f"run both with the same, or accept it with --unequal {name}")
        for name, difference in _spending_differences(a, b)
        if name not in unequal and not (name == "megabytes" and training(a) != training(b))
    ]
    refused = (*_budget_differences(a, b), *_data_differences(a, b), *_split_differences(a, b), *spent)
    for problem, remedy in refused:
        raise ConfigError(
            f"{display_path(a.folder)} and {display_path(b.folder)} cannot be compared: {problem}; {remedy}"
        )


def accepted_differences(a: Run, b: Run) -> list[str]:
    """Differences in this pair that were accepted."""
    spent = [*_spending_differences(a, b)]
    if training(a) == training(b):
        return [f"unequal {name}, accepted by --unequal: {difference}" for name, difference in spent]
    return [*_training_differences(a, b), *(difference for _, difference in spent)]


def _training_differences(a: Run, b: Run) -> Iterator[str]:
    """What local, central or federated training changes, in words."""
    yield f"A is {training(a)}, B {training(b)} training, of the same data and with the same test examples"
    for side, run in (("A", a), ("B", b)):
        if training(run) == "local":
            yield f"{side} has no global model: its test scores are means over the clients' own models"
    for key in CLIENTS:
        ours, theirs = (_budget(run, key) for run in (a, b))
        if ours.value != theirs.value:
            yield _in_words(ours, theirs)
    if reason := _digest_difference(a, b, "split_sha256"):
        keys = [key for key in SPLIT if (a.config.get(key) or 0) != (b.config.get(key) or 0)]
        words = [f"{key} is {short_text(a.config.get(key))} and {short_text(b.config.get(key))}" for key in keys]
        yield f"they train on different examples, {', '.join(words) or reason}"


def _budget_differences(a: Run, b: Run) -> Iterator[tuple[str, str]]:
    stops = [key for key in dict.fromkeys([*a.config, *b.config]) if key.startswith("stop.")]
    for key in (*BUDGET, *stops):
        if key in CLIENTS and training(a) != training(b):
            continue
        ours, theirs = (_budget(run, key) for run in (a, b))
        if ours.value != theirs.value:
            yield (
                f"their budgets differ, {_in_words(ours, theirs)}",
                f"run both with the same {ours.key}" if ours.key == theirs.key else "give both the same number",
            )


def _budget(run: Run, key: str) -> _Setting:
    """What a run has of a key of the budget, and the key that says so: selector.count, where it does not follow."""
    of_part = run.raw_config.get(SOURCES[key]) if key in CLIENTS else None
    acting = key if of_part is None or refers_to(of_part, key) else SOURCES[key]
    value, clients = run.config.get(acting), (run.summary or {}).get("clients")
    if acting == "scenario.participants" and isinstance(value, int) and isinstance(clients, int):
        value = min(value, clients)  # more than there are cannot take part
    return _Setting(acting, value or 0.0 if key == "scenario.public_fraction" else value)


def _in_words(ours: _Setting, theirs: _Setting) -> str:
    if ours.key == theirs.key:
        return f"{ours.key} is {short_text(ours.value)} and {short_text(theirs.value)}"
    return (
        f"{ours.key} is {short_text(ours.value)} for one and {theirs.key} is {short_text(theirs.value)} for the other"
    )


def _spending_differences(a: Run, b: Run) -> Iterator[tuple[str, str]]:
    """Which of `UNEQUAL` differ, and how: work by the config, megabytes by the tables if both ran all rounds."""
    for key, name in WORK.items():
        ours, theirs = a.config.get(key), b.config.get(key)
        if ours != theirs:
            yield name, f"{key} is {short_text(ours)} and {short_text(theirs)}"
    ours, theirs = (_megabytes(run) for run in (a, b))
    if len(a.rounds) == len(b.rounds) and abs(ours - theirs) > MEGABYTES_TOLERANCE * max(ours, theirs):
        yield "megabytes", f"{ours:,.4g} and {theirs:,.4g} MB were sent"


def _megabytes(run: Run) -> float:
    return float(np.nansum(run.column("mb_down")) + np.nansum(run.column("mb_up")))


def _data_differences(a: Run, b: Run) -> Iterator[tuple[str, str]]:
    if reason := _digest_difference(a, b, "data_sha256"):
        yield f"their data differ, {reason}", "run both on the same files and the same code"


def _split_differences(a: Run, b: Run) -> Iterator[tuple[str, str]]:
    """Whether the clients hold different examples; another kind of training may."""
    if training(a) == training(b) and (reason := _digest_difference(a, b, "split_sha256")):
        yield f"their clients hold different examples, {reason}", _split_remedy(a, b)


def _split_remedy(a: Run, b: Run) -> str:
    """What to do about the likeliest reason why the same seed gave two splits."""
    for key in HELD_OUT:
        ours, theirs = (run.config.get(key) for run in (a, b))
        if ours != theirs:
            return f"{key} is {ours} for one and {theirs} for the other; give both the same"
    if not (a.config.get("evaluation.validation") and b.config.get("evaluation.validation")):
        return (
            "if a part of one of them (a selector, an aggregator, a stop rule) takes validation data off the training "
            "data, set evaluation.validation=true for all"
        )
    ours, theirs = (short_text(run.config.get("evaluation.validation_at")) for run in (a, b))
    if ours != theirs:
        return f"evaluation.validation_at is {ours} for one and {theirs} for the other; give both the same"
    return "run both with the same settings of evaluation, scenario and audit, and the same code"


def _digest_difference(a: Run, b: Run, key: str) -> str:
    """What the digests of two summaries say, in words; empty where they are equal."""
    ours, theirs = ((run.summary or {}).get(key) for run in (a, b))
    if ours is None or theirs is None:
        return f"or nobody can tell: a summary.json has no {key}"
    return "" if ours == theirs else f"{key} in summary.json says so"
