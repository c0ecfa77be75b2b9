"""A text file, line by line: the next character or word is to be predicted from those before it.

The lines are dealt out in order: `subjects` authors have a consecutive part each, for `federation=subject`. A share of
the lines is for testing, the same in every run whatever its seed. A line becomes examples of `length` tokens; it begins
after the end of a line and ends with one, and what is left at the end of an example is not to be predicted. The
vocabulary is that of the training lines; other tokens are `<unk>`. Legend: W examples, L length.
"""

import sys
import sysconfig
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import numpy as np
import torch

from fedexp.core.errors import ConfigError
from fedexp.core.part import Range
from fedexp.core.random_streams import stream
from fedexp.data.encoding import held_out
from fedexp.data.pile import Pile
from fedexp.data.store import own_file, stamp
from fedexp.data.tokens import Unit, cut, numbered, vocabulary
from fedexp.parts.dataset.contract import IGNORED, Data, Dataset, Facts, Split

END = "<line>"
LICENCE = "LICENSE.txt"


def windows(tokens: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Examples and targets `[W, L]` of a sequence of tokens, each of which but the first is predicted once."""
    count = -(-(len(tokens) - 1) // length)
    x, y = np.zeros(count * length, np.int64), np.full(count * length, IGNORED, np.int64)
    x[: len(tokens) - 1], y[: len(tokens) - 1] = tokens[:-1], tokens[1:]
    return x.reshape(count, length), y.reshape(count, length)


@dataclass(frozen=True)
class Read:
    """The examples of a text, and its vocabulary."""

    train: Split
    test: Split
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Text(Dataset):
    """Without a `file` it is Python's own licence. `vocabulary` bounds the number of different tokens."""

    file: Path | None = None
    unit: Unit = "characters"
    length: Annotated[int, Range(1, 100_000)] = 80
    vocabulary: Annotated[int, Range(1)] = 10_000
    subjects: Annotated[int, Range(1)] = 10
    test_fraction: Annotated[float, Range(0, 1, low_open=True, high_open=True)] = 0.2

    def facts(self, directory: Path) -> Facts:
        read = self._read(directory)
        words, authors = len(read.names), read.train.subject
        assert authors is not None
        return Facts((self.length,), words, len(read.train.y), len(authors.unique()), "tokens", words)

    def require(self, directory: Path) -> None:
        self._read(directory)

    def verify(self, directory: Path) -> list[str]:
        read = self._read(directory)
        count = len(read.train.y) + len(read.test.y)
        told = f"{count:,} examples of {self.length} {self.unit}, {len(read.names):,} different ones"
        return [f"{self._file(directory)} holds {told} (any text will do: there is no checksum)"]

    def download(self, directory: Path) -> None:
        raise ConfigError("dataset=text has no source to download from: it reads your own file; set dataset.file=...")

    def load(self, directory: Path, seed: int) -> Data:
        read = self._read(directory)
        return Data(read.train, read.test, read.names)

    def _file(self, directory: Path) -> Path:
        if self.file is not None:
            return own_file(self.file, directory, "dataset.file", "text")
        places = [Path(place) / LICENCE for place in (sysconfig.get_path("stdlib"), sys.base_prefix)]
        found = next((place for place in places if place.is_file()), None)
        if found is None:
            raise ConfigError(f"dataset.file must be given where Python has no {LICENCE}; set dataset.file=...")
        return found

    def _read(self, directory: Path) -> Read:
        return _parse(self, stamp(self._file(directory)))


@lru_cache(maxsize=1)
def _parse(asked: Text, source: tuple[tuple[str, int, int], ...]) -> Read:
    """Reads the file once for facts and examples, as long as its size and time stay."""
    lines = _lines(Path(source[0][0]), asked)
    test = held_out(np.zeros(len(lines), np.int64), asked.test_fraction, stream(0, "text", "test"))
    if not test.any():
        raise ConfigError(
            f"dataset.test_fraction must give a line for testing, got {asked.test_fraction:g} of "
            f"{len(lines)} lines; raise it"
        )
    if (left := int((~test).sum())) < asked.subjects:
        raise ConfigError(
            f"dataset.test_fraction must leave a training line for each of {asked.subjects} subjects, got "
            f"{asked.test_fraction:g} of {len(lines)} lines, which leaves {left}; lower it or dataset.subjects"
        )
    names = vocabulary((_tokens(lines[line], asked) for line in np.flatnonzero(~test)), asked.vocabulary)
    table = {name: number for number, name in enumerate(names)}
    train, held = (_examples(lines, np.flatnonzero(chosen), table, asked) for chosen in (~test, test))
    return Read(train, held, names)


def _lines(path: Path, asked: Text) -> list[str]:
    """The non-empty lines of a text file. Raises ConfigError if it cannot be read or has too few of them."""
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} must be a text in UTF-8, but is not: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    if len(lines) < 2 * asked.subjects:
        raise ConfigError(
            f"{path} must have two lines for each of {asked.subjects} subjects, got {len(lines)} that are "
            "not empty; lower dataset.subjects"
        )
    return lines


def _tokens(line: str, asked: Text) -> list[str]:
    return [END, *cut(line, asked.unit), END]


def _examples(lines: list[str], chosen: np.ndarray, table: dict[str, int], asked: Text) -> Split:
    """The examples of the lines with numbers `chosen [n]`, and the author of each."""
    counts = np.zeros(len(chosen), np.int64)
    with Pile() as x, Pile() as y:
        for place, line in enumerate(chosen.tolist()):
            given, wanted = windows(numbered(_tokens(lines[line], asked), table), asked.length)
            x.add(given)
            y.add(wanted)
            counts[place] = len(given)
        author = chosen * asked.subjects // len(lines)
        return Split(*(torch.from_numpy(array) for array in (x.whole(), y.whole(), np.repeat(author, counts))))
