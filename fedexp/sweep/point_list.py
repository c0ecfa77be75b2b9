"""`points=FILE`: the points of a sweep as lines of a file, each with words of its own, such as a method's tuned rate.

A CSV file has a key or group in each column; an empty cell sets nothing. A YAML file is a list of mappings. The word
that a sweep's folder keeps holds the points themselves, so the file may change or go.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from fedexp.config.override_text import override_text
from fedexp.config.resolvers import words_with_environment
from fedexp.core.errors import ConfigError, first_line
from fedexp.files.user_csv import demand_unique_names, read_header, rows_with_lines, separator_name

NAME = "points"
PREFIX = f"{NAME}="
ENDINGS = (".csv", ".yaml", ".yml")

Located = tuple[str, list[str]]  # where a point was written, and its words


def is_points(word: str) -> bool:
    """Whether an override names the points of a sweep."""
    return word.startswith(PREFIX)


def refuse(words: Sequence[str]) -> None:
    """Raises ConfigError if the words of a single run name points."""
    for word in filter(is_points, words):
        raise ConfigError(f"{word} lists the points of a sweep; write fedexp run -m {word}")


def with_points(words: Sequence[str]) -> list[str]:
    """The words with a file of points replaced by what it holds.

    Raises:
        ConfigError: the file cannot be read, a line is not one point, or a key is both a column and a word.
    """
    other_words, named = [word for word in words if not is_points(word)], [word for word in words if is_points(word)]
    if not named:
        return other_words
    if len(named) > 1:
        raise ConfigError(f"{NAME} must be given once, got {' '.join(named)}; put all points into one file")
    value = OverridesParser.create().parse_override(named[0]).value()
    located = _read(value) if isinstance(value, str) else []
    if isinstance(value, list) and all(map(_are_words, value)):  # a script's
        located = [(f"point {number}", point) for number, point in enumerate(value, 1)]
    if not located:
        raise ConfigError(f"{NAME} must name a file with points ({', '.join(ENDINGS)}), got {named[0]}")
    typed = {override.key_or_group for override in OverridesParser.create().parse_overrides(other_words)}
    for where, point in located:
        _demand_point(where, point, typed)
    first: dict[frozenset[str], str] = {}
    for where, point in located:
        if (earlier := first.setdefault(frozenset(point), where)) != where:
            raise ConfigError(f"{where}: every point must be another, but {earlier} has the same words; remove one")
    return [*other_words, PREFIX + override_text([words_with_environment(point) for _, point in located])]


def split(words: Sequence[str]) -> tuple[list[str], list[list[str]] | None]:
    """The other words, and the words of each point that the word `points=[[...],...]` holds; None without one.

    Raises:
        ConfigError: it holds anything but lists of words; a folder may say so, and then no file is read.
    """
    other_words, named = [word for word in words if not is_points(word)], [word for word in words if is_points(word)]
    if not named:
        return other_words, None
    points = OverridesParser.create().parse_override(named[-1]).value()
    if not isinstance(points, list) or not points or not all(map(_are_words, points)):
        raise ConfigError(f"{NAME} of a saved sweep must be lists of words, got {named[-1][:60]}; restore it")
    return other_words, points


def _are_words(point: object) -> bool:
    return isinstance(point, list) and all(isinstance(word, str) for word in point)


def _read(name: str) -> list[Located]:
    path = Path(name).expanduser()
    if path.suffix not in ENDINGS:
        return []
    try:
        return list(_csv_points(path) if path.suffix == ".csv" else _yaml_points(path))
    except OSError as error:
        raise ConfigError(f"{NAME}: cannot read {name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        message = f"{NAME}: {name} must be text in UTF-8, but holds the byte 0x{byte:02x}; save it as UTF-8"
        raise ConfigError(message) from error
    except (ValueError, csv.Error, yaml.YAMLError, OmegaConfBaseException) as error:
        raise ConfigError(f"{NAME}: {name} cannot be read: {' '.join(str(error).split())}") from error


def _csv_points(path: Path) -> Iterator[Located]:
    header = read_header(path)
    names = [cell.strip() for cell in header]
    if (separator := separator_name(",".join(header))) is not None:
        raise ConfigError(f"{path} must have commas between its columns, but has {separator}; save it with commas")
    if names:
        demand_unique_names(path, names)
    lines = path.read_text(encoding="utf-8-sig").splitlines(keepends=True)
    rows = [(line, cells) for line, cells in rows_with_lines(lines) if cells]
    if len(rows) < 2:
        raise ConfigError(f"{path} must have a line of keys and a line for each point; add points")
    for line, cells in rows[1:]:
        where = f"{path}, line {line}"
        if len(cells) != len(names):
            raise ConfigError(f"{where} must have {len(names)} cells as the first line, got {len(cells)}; add commas")
        texts = [cell.strip() for cell in cells]
        yield where, [f"{name}={text}" for name, text in zip(names, texts, strict=True) if text]


def _yaml_points(path: Path) -> Iterator[Located]:
    content: Any = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
    if not isinstance(content, list) or not content:
        raise ConfigError(
            f"{path} must be a list of points, such as `- {{local: adam, local.lr: 0.01}}`; write - first"
        )
    for number, point in enumerate(content, 1):
        where = f"{path}, point {number}"
        if not isinstance(point, Mapping):
            raise ConfigError(f"{where} must be keys and values, got {point!r}; write - key: value")
        yield where, [f"{key}={override_text(value)}" for key, value in point.items()]


def _demand_point(where: str, point: list[str], typed: set[str]) -> None:
    """Raises ConfigError unless the words set keys of one run that no typed word sets."""
    if not point:
        raise ConfigError(f"{where} sets nothing; fill a cell or remove the line")
    for word in point:
        try:
            override = OverridesParser.create().parse_override(word)
        except HydraException as error:
            raise ConfigError(
                f"{where}: cannot read {word}: {first_line(error)}; write it as on the command line"
            ) from error
        key = override.key_or_group
        if override.is_sweep_override():
            raise ConfigError(f"{where}: {key} must have one value, got {word}; write a line for each, or quote a text")
        if key.startswith("hydra") or key == NAME:
            raise ConfigError(f"{where}: a column must be a key or group of the experiment, got {key}; remove it")
        if key in typed:
            raise ConfigError(f"{where}: {key} is set here and by a word of the command; leave one of them out")
