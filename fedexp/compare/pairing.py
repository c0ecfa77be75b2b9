"""Groups the runs of two sides into contests: a method of A against the method of B, paired by seed and dataset.

A method is the whole config except the seed and the data. Runs that are left out are reported; a pair that cannot be
compared is refused.
"""

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedexp.compare import equality
from fedexp.config.override_text import short_text
from fedexp.core.errors import ConfigError
from fedexp.core.files import shown
from fedexp.report.methods import differing_keys, differing_options, frozen, labels, options, settings
from fedexp.report.runs import Run

_NOT_THE_METHOD = (*equality.DATA, "partition", "setting", "experiment")  # data, and bundles of settings
Block = tuple[str, int]  # data, seed


@dataclass(frozen=True, eq=False)
class Contest:
    """One method of A against that of B, on the same blocks in the same order."""

    a: str
    b: str
    blocks: tuple[str, ...]
    pairs: tuple[tuple[Run, Run], ...]
    compared: tuple[str, ...]  # what differs between the two configs
    notes: tuple[str, ...]

    @property
    def runs(self) -> list[Run]:
        return [run for pair in self.pairs for run in pair]


@dataclass(frozen=True, eq=False)
class _Method:
    blocks: dict[Block, Run]
    notes: tuple[str, ...]

    @property
    def any(self) -> Run:
        return next(iter(self.blocks.values()))


def contests(a: Sequence[Run], b: Sequence[Run], unequal: Collection[str] = ()) -> list[Contest]:
    """Every method of A against the one of B; `unequal` names those of `equality.UNEQUAL` that may differ.

    Raises:
        ConfigError: B is several methods, nothing is left to pair, or a pair differs in data, split or budget.
    """
    against = _methods(b, "B")
    if len(against) > 1:
        names = "; ".join(labels([method.any for method in against]))
        raise ConfigError(
            f"--against must be one method, got {len(against)}: {names}; give only its folders, or pick it by "
            "KEY=VALUE, e.g. --against outputs/latest selector=random"
        )
    held = {run.folder.resolve() for run in b}
    others = [run for run in a if run.folder.resolve() not in held]
    if not others:
        raise ConfigError("A and B are the same runs; give other folders, or pick others by KEY=VALUE")
    mine, (yours,) = _methods(others, "A"), against
    names = _names(mine, yours)
    return [_contest(method, yours, name, unequal) for method, name in zip(mine, names, strict=True)]


def _methods(runs: Sequence[Run], side: str) -> list[_Method]:
    """The methods of one side, each with at most one finished run for each block."""
    groups: dict[Any, list[Run]] = {}
    for run in runs:
        groups.setdefault(_identity(run), []).append(run)
    return [_method(members, side) for members in groups.values()]


def _method(runs: Sequence[Run], side: str) -> _Method:
    blocks: dict[Block, Run] = {}
    finished = [run for run in runs if run.finished]
    unfinished = [shown(run.folder) for run in runs if not run.finished]
    if not finished:
        raise ConfigError(f"compare needs finished runs, but of {side} none of {', '.join(unfinished)} is; resume them")
    for run in finished:
        block = _block(run)
        if block in blocks:
            one, other = shown(blocks[block].folder), shown(run.folder)
            raise ConfigError(f"{one} and {other} are the same method with the same seed {run.seed}; give one of them")
        blocks[block] = run
    return _Method(blocks, (f"left out, unfinished: {', '.join(unfinished)}",) if unfinished else ())


def _identity(run: Run) -> Any:
    chosen = {name: option for name, option in options(run).items() if name not in _NOT_THE_METHOD}
    prefixes = tuple(f"{name}." for name in equality.DATA)
    return frozen(chosen), frozen({key: value for key, value in settings(run).items() if not key.startswith(prefixes)})


def _block(run: Run) -> Block:
    if run.seed is None:
        raise ConfigError(
            f"{shown(run.folder)} has no seed in its config, so nothing can be paired with it; leave it out"
        )
    return repr(sorted((key, short_text(value)) for key, value in equality.data_config(run).items())), run.seed


def _names(mine: Sequence[_Method], yours: _Method) -> list[tuple[str, str]]:
    """The labels of each method and of its opponent; equal methods in two places get the places as names."""
    *first, last = labels([*(_first_in(method, yours) for method in mine), _first_in(yours, mine[0])])
    names = []
    for name, method in zip(first, mine, strict=True):
        if _identity(method.any) == _identity(yours.any):
            names.append((f"{name} in {_place(method)}", f"{name} in {_place(yours)}"))
        else:
            names.append((name, last))
    return names


def _first_in(method: _Method, other: _Method) -> Run:
    """A run in a block that the other method has, too, if there is one: then labels need not name the dataset."""
    return next((run for block, run in method.blocks.items() if block in other.blocks), method.any)


def _place(method: _Method) -> str:
    return shown(Path(os.path.commonpath([run.folder for run in method.blocks.values()])))


def _contest(mine: _Method, yours: _Method, names: tuple[str, str], unequal: Collection[str]) -> Contest:
    shared = sorted(mine.blocks.keys() & yours.blocks.keys())
    if not shared:
        raise ConfigError(f"{names[0]} and {names[1]} cannot be compared: {_why_unpaired(mine, yours)}")
    pairs = tuple((mine.blocks[block], yours.blocks[block]) for block in shared)
    for pair in pairs:
        equality.demand(*pair, unequal)
    notes = [*mine.notes, *yours.notes]
    for side, method, other in (("A", mine, yours), ("B", yours, mine)):
        alone = [shown(run.folder) for block, run in method.blocks.items() if block not in other.blocks]
        notes += [f"left out, without a partner: {', '.join(alone)} of {side}"] if alone else []
    notes += dict.fromkeys(doubt for pair in pairs for doubt in equality.doubts(*pair))
    return Contest(*names, _block_names([b for _, b in pairs]), pairs, tuple(_compared(*pairs[0])), tuple(notes))


def _block_names(runs: Sequence[Run]) -> tuple[str, ...]:
    """The seed of each run, preceded by the keys of its data that differ between the runs."""
    data = [equality.data_config(run) for run in runs]
    keys = [
        key
        for key in dict.fromkeys(key for one in data for key in one)
        if len({frozen(one.get(key)) for one in data}) > 1
    ]
    keys = [key for key in keys if key in equality.DATA] or [key for key in keys if not key.endswith("_target_")]
    told = ["".join(f"{key}={short_text(one.get(key))} " for key in keys) for one in data]
    return tuple(f"{which}seed {run.seed}" for which, run in zip(told, runs, strict=True))


def _why_unpaired(mine: _Method, yours: _Method) -> str:
    seeds, theirs = ({seed for _, seed in method.blocks} for method in (mine, yours))
    if not seeds & theirs:
        return f"no seed in common, A has {_listed(seeds)} and B {_listed(theirs)}; run both with the same seeds"
    a, b = equality.data_config(mine.any), equality.data_config(yours.any)
    keys = [key for key in dict.fromkeys([*a, *b]) if a.get(key) != b.get(key)]
    shown_keys = ", ".join(f"{key} is {short_text(a.get(key))} and {short_text(b.get(key))}" for key in keys[:3])
    return f"their data differ, {shown_keys}; run both on the same data"


def _listed(seeds: set[int]) -> str:
    return ", ".join(map(str, sorted(seeds)))


def _compared(a: Run, b: Run) -> list[str]:
    """The settings that differ: options first, then the keys that do not follow from them, then the code."""
    groups = differing_options([options(a), options(b)])
    told = [f"{name}: {options(a).get(name, 'none')} / {options(b).get(name, 'none')}" for name in groups]
    brought = tuple(f"{name}." for name in groups)
    keys = [key for key in differing_keys([a, b]) if not key.startswith(brought) and key != "_target_"]
    told += [f"{key}: {short_text(settings(a).get(key))} / {short_text(settings(b).get(key))}" for key in keys]
    return [*told, *_code(a, b)]


def _code(a: Run, b: Run) -> list[str]:
    commits = [str(((run.summary or {}).get("git") or {}).get("commit", "unknown"))[:10] for run in (a, b)]
    return [f"commit: {commits[0]} / {commits[1]}"] if commits[0] != commits[1] else []
