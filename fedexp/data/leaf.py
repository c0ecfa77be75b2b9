"""LEAF's JSON files: folders `train` and `test` of files with users and their examples.

Caldas et al., "LEAF: a benchmark for federated settings", 2018, arXiv:1812.01097. A file holds `users`, `num_samples`
and `user_data`: for each user `x` and `y` of equal length. Each user is in one file of a part. Files are parsed once;
the arrays are kept in the cache under the files' sizes and times. Legend: S examples.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fedexp.core.errors import ConfigError
from fedexp.data.pile import SpillBuffer
from fedexp.data.store import Arrays, load_or_make, stamp

PARTS = ("train", "test")
MAX_CLASSES = 10_000  # classes: with more, a label is hardly one
LETTERS = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"  # LEAF's, in its order
NUMBER = {letter: number for number, letter in enumerate(LETTERS)}

Examples = Callable[[list[Any]], np.ndarray]


def files(folder: Path) -> dict[str, list[Path]]:
    """The JSON files of both parts, in alphabetical order.

    Raises:
        ConfigError: a part has none, or what is named like one is no file.
    """
    paths = {part: sorted((folder / part).glob("*.json")) for part in PARTS}
    for part, names in paths.items():
        if not names:
            raise ConfigError(
                f"no JSON files in {folder / part}; dataset.path must be a folder that LEAF has made, with "
                "train/*.json and test/*.json"
            )
        if odd := next((path for path in names if not path.is_file()), None):
            raise ConfigError(f"{odd} must be a file, but is a folder, a pipe, or a link that leads nowhere; remove it")
    return paths


def arrays(folder: Path, name: str, x: Examples, y: Examples) -> Arrays:
    """`x_train y_train user_train x_test y_test user_test`; users are numbered in the order of their names."""
    return _load_arrays(folder, name, x, y, stamp(*(path for paths in files(folder).values() for path in paths)))


@lru_cache(maxsize=1)  # in this process, too: facts and examples are asked for one after the other
def _load_arrays(folder: Path, name: str, x: Examples, y: Examples, state: tuple[tuple[str, int, int], ...]) -> Arrays:
    key = hashlib.sha256(repr(state).encode()).hexdigest()[:16]
    return load_or_make(f"leaf-2-{name}-{key}", lambda: _parse(files(folder), x, y))


def _parse(listed: dict[str, list[Path]], x: Examples, y: Examples) -> Arrays:
    result: Arrays = {}
    owners: dict[str, list[str]] = {}
    for part, paths in listed.items():
        result[f"x_{part}"], result[f"y_{part}"], owners[part] = _parse_part(paths, x, y)
    names = sorted({name for part in owners.values() for name in part})  # not by NumPy, which cuts NULs off
    number = {name: index for index, name in enumerate(names)}
    for part, part_owners in owners.items():
        result[f"user_{part}"] = np.array([number[name] for name in part_owners], np.int64)
    return result


def _parse_part(paths: list[Path], x: Examples, y: Examples) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Examples, labels and users `[S]` of one part; memory holds one file at a time."""
    owners: list[str] = []
    path_of_user: dict[str, Path] = {}
    width: int | None = None
    with SpillBuffer() as examples, SpillBuffer() as classes:
        for path in paths:
            for name, inputs, targets in _users(path, x, y):
                if name in path_of_user:
                    raise ConfigError(
                        f"user {_brief(name)} is in both {path_of_user[name]} and {path}; remove one of them"
                    )
                width = inputs.shape[1] if width is None else width
                if inputs.shape[1] != width:
                    raise ConfigError(
                        f"all examples in {path.parent} must have {width} entries like the first, but user "
                        f"{_brief(name)} in {path.name} has some of {inputs.shape[1]}"
                    )
                path_of_user[name] = path
                examples.add(inputs)
                classes.add(targets)
                owners += [name] * len(targets)
        if not owners:
            raise ConfigError(f"{paths[0].parent} must hold an example, but no user has one")
        return examples.to_array(), classes.to_array(), owners


def _users(path: Path, x: Examples, y: Examples) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, examples and labels of each user who has some."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_demand_unique_keys)["user_data"]
        for name, record in data.items():
            if len(record["x"]) != len(record["y"]):
                raise ValueError(f"user {_brief(name)} has {len(record['x'])} examples and {len(record['y'])} labels")
            if record["y"]:
                yield name, x(record["x"]), y(record["y"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise ConfigError(f"{path} is not a file of LEAF: {reason}") from None


def _demand_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; a name that comes twice is refused, as the reader would keep its last value alone."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"{_brief(twice)} comes twice in one object")
    return entries


def numbers(values: list[Any]) -> np.ndarray:
    """Lists of numbers as float32 `[S, d]`."""
    with np.errstate(over="ignore"):
        array = np.asarray(values, np.float32)
    if array.ndim != 2 or not array.shape[1] or not np.isfinite(array).all():
        raise ValueError(f"examples must be lists of equally many finite numbers, got {_brief(values[0])}")
    return array


def labels(values: list[Any]) -> np.ndarray:
    """Classes as int64 `[S]`."""
    array = np.asarray(values, np.float64)
    if array.ndim != 1:
        raise ValueError(f"labels must be numbers, got {_brief(values[0])}")
    odd = ~((array >= 0) & (array < MAX_CLASSES) & (np.floor(array) == array))
    if odd.any():
        raise ValueError(f"labels must be whole numbers from 0 to {MAX_CLASSES - 1:,}, got {array[odd][0]:g}")
    return array.astype(np.int64)


def letters(values: list[Any]) -> np.ndarray:
    """Texts of one length as int64 `[S, L]`."""
    widths = {len(text) for text in values}
    if len(widths) != 1:
        raise ValueError(f"texts must have one length, got {min(widths)} to {max(widths)} characters")
    text = "".join(values)
    if odd := next((letter for letter in text if letter not in NUMBER), None):
        raise ValueError(f"its alphabet of {len(LETTERS)} letters has no {odd!r}")
    return np.array([NUMBER[letter] for letter in text], np.int64).reshape(len(values), -1)


def letter(values: list[Any]) -> np.ndarray:
    """Single letters as int64 `[S]`."""
    array = letters(values)
    if array.shape[1] != 1:
        raise ValueError(f"a label must be one letter, got {_brief(values[0])}")
    return array[:, 0]


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:60]}..."
