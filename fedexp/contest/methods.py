"""The methods of a contest: values with commas between them among the words, or the lines of a file.

A file (a YAML list, or a CSV table) has for each method its `name`, its `words`, and under `search` what it searches
beside the shared keys, both as they would be typed.
"""

import csv
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedexp.core.errors import ConfigError
from fedexp.files.atomic import display_path
from fedexp.files.untrusted_yaml import read_yaml_list
from fedexp.search import space
from fedexp.search.study import folder_name

ENDINGS = (".yaml", ".yml", ".csv")
COLUMNS = {"name", "words", "search"}
_NAME = re.compile(r"[^\W_][^\x00-\x1f\x7f]*")


@dataclass(frozen=True)
class Contender:
    """A method of a contest: its name, and the words that it has beside the shared ones."""

    name: str
    words: tuple[str, ...]

    @property
    def folder(self) -> str:
        """The name of its folders."""
        return folder_name((self.name,))


def read_methods(words: Sequence[str]) -> tuple[tuple[Contender, ...], tuple[str, ...]]:
    """The methods and the shared words, from what was typed.

    Raises:
        ConfigError: there are no two methods, one is there twice, or a file cannot be read.
    """
    files = [word for word in words if "=" not in word and word.endswith(ENDINGS)]
    shared = tuple(word for word in words if word not in files)
    methods = [contender for file in files for contender in _read_file(Path(file))]
    if not files and words:
        listed = space.read(words).methods
        methods = [Contender(" ".join(method), method) for method in listed if method]
        keys = {word.partition("=")[0] for word in listed[0]}
        shared = tuple(word for word in words if word.partition("=")[0] not in keys)
    refuse_wrong(methods)
    return tuple(methods), shared


def refuse_wrong(methods: Sequence[Contender]) -> None:
    """Raises ConfigError if there are less than two methods, a name names no folder, or two methods are the same."""
    if len(methods) < 2:
        raise ConfigError(
            "a contest needs two methods or more, as words (algorithm=fedavg,fedprox) or in a file (methods.yaml); got "
            f"{methods[0].name if methods else 'none'}"
        )
    for number, method in enumerate(methods):
        if not _NAME.fullmatch(method.name):
            raise ConfigError(f"the name of a method must begin with a letter or digit, got {method.name!r}")
        for earlier in methods[:number]:
            if earlier.folder == method.folder or sorted(earlier.words) == sorted(method.words):
                raise ConfigError(f"a contest must have each method once, got {earlier.name} and {method.name}")


def _read_file(path: Path) -> list[Contender]:
    try:
        if path.suffix == ".csv":
            with path.open(encoding="utf-8-sig", newline="") as file:
                records: list[Any] = list(csv.DictReader(file, strict=True))
        else:
            records = read_yaml_list(path.resolve(strict=True))
        return [_contender(record) for record in records]
    except ConfigError:
        raise
    except (OSError, ValueError, TypeError, csv.Error) as error:
        raise ConfigError(
            f"{display_path(path)} must hold a method a line, with name, words and search as texts: {error}"
        ) from error


def _contender(record: Any) -> Contender:
    texts = {key: value or "" for key, value in dict(record).items()}
    if not {"name"} <= texts.keys() <= COLUMNS or not all(isinstance(text, str) for text in texts.values()):
        raise ValueError(f"got {texts}")
    return Contender(texts["name"].strip(), tuple(shlex.split(f"{texts.get('words', '')} {texts.get('search', '')}")))
