"""Pairs the methods of two sides: every method of A with the method of B, their runs by seed and dataset.

A method is the whole config except the seed and the data. Runs that are left out are reported; a pair that cannot be
compared is refused.
"""

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from fedexp.compare import equality
from fedexp.config.override_text import short_text
from fedexp.core.errors import ConfigError
from fedexp.files.atomic import display_path
from fedexp.report.read import clocks
from fedexp.report.read.idle import MARK, is_idle
from fedexp.report.read.methods import (
    changed_words,
    differing_keys,
    differing_options,
    freeze,
    labels,
    options,
    settings,
)
from fedexp.report.read.runs import Run

_NOT_THE_METHOD = (*equality.DATA, "partition", "setting", "experiment")  # data, and bundles of settings
Block = tuple[str, int]  # data, seed


@dataclass(frozen=True, eq=False)
class MethodPair:
    """A method of A and that of B, on the same blocks in the same order."""

    a: str
    b: str
    blocks: tuple[str, ...]
    pairs: tuple[tuple[Run, Run], ...]
    differences: tuple[str, ...]  # what differs between the two configs
    notes: tuple[str, ...]

    @property
    def runs(self) -> list[Run]:
        return [run for pair in self.pairs for run in pair]


@dataclass(frozen=True, eq=False)
class _Method:
    blocks: dict[Block, Run]
    notes: tuple[str, ...]

    @property
    def first_run(self) -> Run:
        return next(iter(self.blocks.values()))


def pair_methods(a: Sequence[Run], b: Sequence[Run], unequal: Collection[str] = ()) -> list[MethodPair]:
    """Every method of A against the one of B; `unequal` names those of `equality.UNEQUAL` that may differ.

    Raises:
        ConfigError: B is several methods, nothing is left to pair, or a pair differs in data, split or budget.
    """
    methods_b = _methods(b, "B")
    if len(methods_b) > 1:
        names = "; ".join(labels([method.first_run for method in methods_b]))
        raise ConfigError(
            f"--against must be one method, got {len(methods_b)}: {names}; give only its folders, or pick it by "
            "KEY=VALUE, e.g. --against outputs/latest selector=random"
        )
    folders_b = {run.folder.resolve() for run in b}
    runs_a = [run for run in a if run.folder.resolve() not in folders_b]
    if not runs_a:
        raise ConfigError("A and B are the same runs; give other folders, or pick others by KEY=VALUE")
    methods_a, (method_b,) = _methods(runs_a, "A"), methods_b
    names = _method_names(methods_a, method_b)
    return [_method_pair(method, method_b, name, unequal) for method, name in zip(methods_a, names, strict=True)]


def _methods(runs: Sequence[Run], side: str) -> list[_Method]:
    """The methods of one side, each with at most one finished run for each block."""
    groups: dict[Any, list[Run]] = {}
    for run in runs:
        groups.setdefault(_identity(run), []).append(run)
    return [_method(members, side) for members in groups.values()]


def _method(runs: Sequence[Run], side: str) -> _Method:
    blocks: dict[Block, Run] = {}
    finished = [run for run in runs if run.is_finished]
    unfinished = [display_path(run.folder) for run in runs if not run.is_finished]
    if not finished:
        raise ConfigError(f"compare needs finished runs, but of {side} none of {', '.join(unfinished)} is; resume them")
    for run in finished:
        block = _block(run)
        if block in blocks:
            first, second = display_path(blocks[block].folder), display_path(run.folder)
            raise ConfigError(
                f"{first} and {second} are the same method with the same seed {run.seed}; give one of them"
            )
        blocks[block] = run
    failed = [display_path(run.folder) for run in finished if run.has_failed]
    notes = [f"left out, unfinished: {', '.join(unfinished)}"] if unfinished else []
    notes += [f"no update of any round was finite, so these are first models: {', '.join(failed)}"] if failed else []
    return _Method(blocks, tuple(notes))


def _identity(run: Run) -> Any:
    chosen = {name: option for name, option in options(run).items() if name not in _NOT_THE_METHOD}
    prefixes = tuple(f"{name}." for name in equality.DATA)
    return (
        equality.training(run),
        freeze(chosen),
        freeze({key: value for key, value in settings(run).items() if not key.startswith(prefixes)}),
    )


def _block(run: Run) -> Block:
    if run.seed is None:
        raise ConfigError(
            f"{display_path(run.folder)} has no seed in its config, so nothing can be paired with it; leave it out"
        )
    return repr(sorted((key, short_text(value)) for key, value in equality.data_config(run).items())), run.seed


def _method_names(methods_a: Sequence[_Method], method_b: _Method) -> list[tuple[str, str]]:
    """The labels of each method and of its opponent; equal methods in two places get the places as names."""
    *first, last = labels(
        [
            *(_run_in_shared_block(method, method_b) for method in methods_a),
            _run_in_shared_block(method_b, methods_a[0]),
        ]
    )
    names = []
    for name, method in zip(first, methods_a, strict=True):
        if _identity(method.first_run) == _identity(method_b.first_run):
            other_name = name if method.blocks.keys() & method_b.blocks.keys() else last
            names.append((f"{name} in {_common_folder(method)}", f"{other_name} in {_common_folder(method_b)}"))
        else:
            names.append((name, last))
    return names


def _run_in_shared_block(method: _Method, opponent: _Method) -> Run:
    """A run in a block that the other method has, too, if there is one: then labels need not name the dataset."""
    return next((run for block, run in method.blocks.items() if block in opponent.blocks), method.first_run)


def _common_folder(method: _Method) -> str:
    return display_path(Path(os.path.commonpath([run.folder for run in method.blocks.values()])))


def _method_pair(method_a: _Method, method_b: _Method, names: tuple[str, str], unequal: Collection[str]) -> MethodPair:
    runs_a, runs_b = ([run for _, run in sorted(method.blocks.items())] for method in (method_a, method_b))
    pairs = tuple((a, b) for a in runs_a for b in runs_b if equality.have_same_data(a, b))
    if not pairs:
        raise ConfigError(f"{names[0]} and {names[1]} cannot be compared: {_why_unpaired(method_a, method_b)}")
    equality.refuse_shared_runs(pairs, names)
    for pair in pairs:
        equality.require_comparable(*pair, unequal)
    notes = [*method_a.notes, *method_b.notes]
    for side, (name, method) in enumerate((("A", method_a), ("B", method_b))):
        paired_folders = {pair[side].folder for pair in pairs}
        unpaired = [display_path(run.folder) for run in method.blocks.values() if run.folder not in paired_folders]
        notes += [f"left out, without a partner: {', '.join(unpaired)} of {name}"] if unpaired else []
    notes += dict.fromkeys(doubt for pair in pairs for doubt in equality.accepted_differences(*pair))
    notes += [clocks.NOTE] if clocks.share_link_differently(chain.from_iterable(pairs)) else []
    return MethodPair(
        *names, _block_names([b for _, b in pairs]), pairs, tuple(_differing_settings(*pairs[0])), tuple(notes)
    )


def _block_names(runs: Sequence[Run]) -> tuple[str, ...]:
    """The seed of each run, preceded by the keys of its data that differ between the runs."""
    data = [equality.data_config(run) for run in runs]
    keys = [
        key
        for key in dict.fromkeys(key for config in data for key in config)
        if len({freeze(config.get(key)) for config in data}) > 1
    ]
    keys = [key for key in keys if key in equality.DATA] or [key for key in keys if not key.endswith("_target_")]
    data_texts = ["".join(f"{key}={short_text(config.get(key))} " for key in keys) for config in data]
    return tuple(f"{data_text}seed {run.seed}" for data_text, run in zip(data_texts, runs, strict=True))


def _why_unpaired(method_a: _Method, method_b: _Method) -> str:
    seeds, theirs = ({seed for _, seed in method.blocks} for method in (method_a, method_b))
    if not seeds & theirs:
        return (
            f"no seed in common, A has {_join_seeds(seeds)} and B {_join_seeds(theirs)}; run both with the same seeds"
        )
    a, b = equality.data_config(method_a.first_run), equality.data_config(method_b.first_run)
    differing = [key for key in dict.fromkeys([*a, *b]) if a.get(key) != b.get(key) and not key.endswith("_target_")]
    keys = [key for key in differing if key in a and key in b] or differing
    shown_keys = ", ".join(f"{key} is {short_text(a.get(key))} and {short_text(b.get(key))}" for key in keys[:3])
    return f"their data differ, {shown_keys}; run both on the same data"


def _join_seeds(seeds: set[int]) -> str:
    return ", ".join(map(str, sorted(seeds)))


def _differing_settings(a: Run, b: Run) -> list[str]:
    """The settings that differ: options first, then the keys that do not follow from them, then the code.

    Of a part whose option differs these are the keys that both options have, and those that are not at their defaults.
    """
    groups = differing_options([options(a), options(b)])
    lines = [f"{name}: {options(a).get(name, 'none')} / {options(b).get(name, 'none')}" for name in groups]
    changed = {key for run in (a, b) for name in groups for key in _changed_keys(run, name)}
    shared = settings(a).keys() & settings(b).keys()
    keys = [
        key
        for key in differing_keys([a, b])
        if not key.endswith("_target_") and (key.partition(".")[0] not in groups or key in shared | changed)
    ]
    acting = [key for key in keys if not (is_idle(a, key) and is_idle(b, key))]
    lines += [f"{key}: {' / '.join(_setting_text(run, key) for run in (a, b))}" for key in acting]
    return [*lines, *_differing_commits(a, b)]


def _changed_keys(run: Run, group: str) -> list[str]:
    """The keys of a run's part that are not at their defaults."""
    return [f"{group}.{word.partition('=')[0]}" for word in changed_words(run, group)]


def _setting_text(run: Run, key: str) -> str:
    mark = f" ({MARK})" if key in settings(run) and is_idle(run, key) else ""
    return f"{short_text(settings(run).get(key))}{mark}"


def _differing_commits(a: Run, b: Run) -> list[str]:
    commits = [str(((run.summary or {}).get("git") or {}).get("commit", "unknown"))[:10] for run in (a, b)]
    return [f"commit: {commits[0]} / {commits[1]}"] if commits[0] != commits[1] else []
