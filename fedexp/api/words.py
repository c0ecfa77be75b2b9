"""From the arguments of a function to the words of the command, composed and refused as there."""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
import torch.distributed as dist
from hydra.core.override_parser.overrides_parser import OverridesParser

from fedexp.api.process import is_loop_open
from fedexp.api.python_messages import refuse_contradictions
from fedexp.config import catalog
from fedexp.config.compose import Composer, Request, make_composer
from fedexp.config.location import conf_dir
from fedexp.config.override_text import override_text
from fedexp.core.errors import ConfigError
from fedexp.process.torchrun import under_torchrun
from fedexp.sweep import point_list

Location = str | PathLike[str]

_ARGUMENTS = {name.replace("_", ""): name for name in ("folder", "config_dir", "quiet", "on_round", "points", "resume")}
_PLAIN = (str, int, float, bool, NoneType, Mapping, Sequence, PathLike, np.generic)
_SWEEPS = "call fedexp.sweep for several"


def run_words(overrides: Sequence[str], keys: Mapping[str, Any], folder: Location | None = None) -> list[str]:
    """The words of a run; raises ConfigError where a word and a keyword argument contradict each other."""
    keys = _plain_values(keys)
    keyword_words = [f"{key}={override_text(value)}" for key, value in keys.items()]
    keyword_words += [] if folder is None else [f"hydra.run.dir={override_text(folder)}"]
    refuse_contradictions(overrides, keyword_words)
    return [*overrides, *keyword_words]


def sweep_words(
    overrides: Sequence[str],
    keys: Mapping[str, Any],
    points: Location | Sequence[Mapping[str, Any]] | None,
    folder: Location | None,
) -> list[str]:
    """The words of a sweep; a list, tuple or range gives several values of its key."""
    keys = _plain_values(keys)
    several = {key: value for key, value in keys.items() if isinstance(value, list | tuple | range)}
    keyword_words = [f"{key}={override_text(value)}" for key, value in keys.items() if key not in several]
    keyword_words += [f"{key}={','.join(map(override_text, values))}" for key, values in several.items()]
    keyword_words += [f"hydra.sweep.dir={override_text(folder)}"] if folder is not None else []
    refuse_contradictions(overrides, keyword_words)
    words = [*overrides, *keyword_words]
    return words if points is None else [*words, f"points={_points_text(points)}"]


def _plain_values(keys: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments with lists in place of vectors and iterators.

    Raises:
        ConfigError: one is misspelt, or its value is an object that no words can give.
    """
    for key in keys:
        if key in _ARGUMENTS.values():
            raise ConfigError(f"{key} is no argument of this function; help() of it tells those that it has")
        close = difflib.get_close_matches(key.replace("_", ""), _ARGUMENTS, n=1, cutoff=0.8)
        if close and not difflib.get_close_matches(key, catalog.root(conf_dir()), n=1, cutoff=0.9):
            raise ConfigError(f"unknown argument {key}; did you mean {_ARGUMENTS[close[0]]}?")
    _refuse_functions(keys)
    values = {}
    for key, value in keys.items():
        is_vector = isinstance(value, np.ndarray) and value.ndim == 1
        final_value = list(value) if is_vector or isinstance(value, Iterator) else value
        if odd := [entry for entry in _entries(final_value) if not isinstance(entry, _PLAIN)]:
            raise ConfigError(
                f"{key} must be given in words, numbers or lists, got an object of {type(odd[0]).__name__}; "
                "data goes into a file: dataset=npz reads arrays, dataset=table a CSV"
            )
        values[key] = final_value
    return values


def _entries(value: Any) -> Iterator[Any]:
    """A value, and all that lies in it."""
    yield value
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    for entry in inner:
        yield from _entries(entry)


def _refuse_functions(keys: Mapping[str, Any]) -> None:
    """Raises ConfigError for a function or a class: other processes, and a later `verify`, must find it in a file."""
    for key, value in keys.items():
        for entry in value if isinstance(value, list | tuple) else [value]:
            if callable(entry):
                name = getattr(entry, "__name__", type(entry).__name__)
                label = name if name.isidentifier() else "NAME"
                named = f'my_metrics.py, and give "my_metrics:{label}"'
                cure = named if key == "evaluation.metrics" else "as fedexp new does"
                raise ConfigError(f"{key} must be given in words, got the object {name}; write it into a file, {cure}")


def _points_text(points: Location | Sequence[Mapping[str, Any]]) -> str:
    if isinstance(points, str | PathLike):
        return override_text(points)
    listed = [] if isinstance(points, Mapping) or not isinstance(points, Iterable) else list(points)
    if odd := [point for point in listed if not isinstance(point, Mapping)]:
        points = odd[0]
    if odd or not listed:
        raise ConfigError(
            f'points must be a file or a list of points, [{{"local.lr": 0.1}}, {{"local.lr": 0.3}}], got {points!r}; '
            'several values of one key are sweep(**{"local.lr": [0.1, 0.3]})'
        )
    return override_text([[f"{key}={override_text(value)}" for key, value in point.items()] for point in listed])


def compose_run(words: list[str], config_dir: Location | None) -> tuple[Composer, Request]:
    """The composer of one run; raises ConfigError if the words ask for a sweep or more."""
    composer, request = compose_any(words, config_dir)
    _refuse_sweeps(composer, words)
    return composer, request


def compose_any(words: list[str], config_dir: Location | None) -> tuple[Composer, Request]:
    """The composer of a run or a sweep; raises ConfigError where neither can start."""
    refuse_distributed()
    _refuse_flags(words)
    request = Request(conf_dir(), words, config_dir=Path(config_dir) if config_dir is not None else None)
    return make_composer(request), request


def refuse_distributed() -> None:
    """Raises ConfigError in a process of torchrun, and in one with a process group."""
    if under_torchrun():
        raise ConfigError("run in a script must be the only process, got torchrun; use torchrun -m fedexp run ...")
    if dist.is_initialized() and is_loop_open():
        raise ConfigError(
            "run needs the process for itself, but a loop over the rounds of another run is open and has worker "
            "processes; leave the loop first (break, or let it end), or give that run engine.workers=1"
        )
    if dist.is_initialized():
        raise ConfigError("run makes its own process group; end yours with torch.distributed.destroy_process_group()")


def _refuse_flags(words: list[str]) -> None:
    for word in words:
        if not isinstance(word, str):
            stars = "**" if isinstance(word, Mapping) else "*" if isinstance(word, list | tuple) else ""
            cure = f"write {stars}{word!r}" if stars else "name values: seed=1"
            raise ConfigError(f"run takes words such as 'selector=random', got {word!r}; {cure}")
        if word in ("-m", "--multirun", "hydra.mode=MULTIRUN"):
            raise ConfigError(f"run makes one run, got {word}; {_SWEEPS}")
        if word.startswith("-"):
            raise ConfigError(f"run takes key=value and group=option, got the flag {word}; leave it out")


def _refuse_sweeps(composer: Composer, words: list[str]) -> None:
    if any(map(point_list.is_points, words)):
        raise ConfigError(f"run makes one run, got points=...; {_SWEEPS}")
    with composer.explain_errors(None, words):
        for override in OverridesParser.create().parse_overrides(words):
            if override.is_sweep_override():
                raise ConfigError(f"run makes one run, but {override.input_line} gives several values; {_SWEEPS}")
