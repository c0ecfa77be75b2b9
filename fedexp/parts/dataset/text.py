"""A text file, line by line: the next character or word is to be predicted from those before it.

The lines are dealt out in order: `subjects` authors have a consecutive part each, for `federation=subject`. A share of
the lines is for testing, the same in every run whatever its seed. A line becomes examples of `length` tokens; it begins
after the end of a line and ends with one, and what is left at the end of an example is not to be predicted. The
vocabulary is that of the training lines; other tokens are `<unk>`. Legend: W examples, L length.
"""

import sys
import sysconfig
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import numpy as np
import torch

from fedexp.core.errors import ConfigError
from fedexp.core.part import Range
from fedexp.core.random_streams import stream
from fedexp.data.pile import SpillBuffer
from fedexp.data.store import find_user_file, stamp
from fedexp.data.tables.encoding import held_out_mask
from fedexp.data.tokens import Unit, encode_tokens, tokenize, vocabulary
from fedexp.parts.dataset.contract import IGNORED, Data, Dataset, Facts, Split

END = "<line>"
LICENCE = "LICENSE.txt"


def windows(tokens: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Examples and targets `[W, L]` of a sequence of tokens, each of which but the first is predicted once."""
    count = -(-(len(tokens) - 1) // length)
    x, y = np.zeros(count * length, np.int64), np.full(count * length, IGNORED, np.int64)
    x[: len(tokens) - 1], y[: len(tokens) - 1] = tokens[:-1], tokens[1:]
    return x.reshape(count, length), y.reshape(count, length)


class Text(Dataset):
    """Without a `file` it is Python's own licence. `vocabulary` bounds the number of different tokens."""

    file: Path | None = None
    unit: Unit = "characters"
    length: Annotated[int, Range(1, 100_000)] = 80
    vocabulary: Annotated[int, Range(1)] = 10_000
    subjects: Annotated[int, Range(1)] = 10
    test_fraction: Annotated[float, Range(0, 1, low_open=True, high_open=True)] = 0.2

    def leaks(self) -> str:
        return "nor is the vocabulary, which is that of all training lines"

    def facts(self, directory: Path) -> Facts:
        data = self.load(directory, 0)
        words, authors = len(data.class_names), data.train.subject
        assert authors is not None
        return Facts((self.length,), words, len(data.train.y), len(authors.unique()), "tokens", words)

    def require(self, directory: Path) -> None:
        self.load(directory, 0)

    def verify(self, directory: Path) -> list[str]:
        data = self.load(directory, 0)
        count = len(data.train.y) + len(data.test.y)
        summary = f"{count:,} examples of {self.length} {self.unit}, {len(data.class_names):,} different ones"
        return [f"{self._file(directory)} holds {summary} (any text will do: there is no checksum)"]

    def download(self, directory: Path) -> None:
        raise ConfigError("dataset=text has no source to download from: it reads your own file; set dataset.file=...")

    def load(self, directory: Path, seed: int) -> Data:
        return _parse(self, stamp(self._file(directory)))

    def _file(self, directory: Path) -> Path:
        if self.file is not None:
            return find_user_file(self.file, directory, "dataset.file", "text")
        candidates = [Path(candidate) / LICENCE for candidate in (sysconfig.get_path("stdlib"), sys.base_prefix)]
        licence = next((candidate for candidate in candidates if candidate.is_file()), None)
        if licence is None:
            raise ConfigError(f"dataset.file must be given where Python has no {LICENCE}; set dataset.file=...")
        return licence


@lru_cache(maxsize=1)
def _parse(settings: Text, source: tuple[tuple[str, int, int], ...]) -> Data:
    """Reads the file once for facts and examples, as long as its size and time stay."""
    lines = _lines(Path(source[0][0]), settings)
    test = held_out_mask(np.zeros(len(lines), np.int64), settings.test_fraction, stream(0, "text", "test"))
    if not test.any():
        raise ConfigError(
            f"dataset.test_fraction must give a line for testing, got {settings.test_fraction:g} of "
            f"{len(lines)} lines; raise it"
        )
    if (remaining := int((~test).sum())) < settings.subjects:
        raise ConfigError(
            f"dataset.test_fraction must leave a training line for each of {settings.subjects} subjects, got "
            f"{settings.test_fraction:g} of {len(lines)} lines, which leaves {remaining}; lower it or dataset.subjects"
        )
    names = vocabulary((_tokens(lines[line], settings) for line in np.flatnonzero(~test)), settings.vocabulary)
    table = {name: number for number, name in enumerate(names)}
    train, test_examples = (_examples(lines, np.flatnonzero(chosen), table, settings) for chosen in (~test, test))
    return Data(train, test_examples, names, vocabulary=names)


def _lines(path: Path, settings: Text) -> list[str]:
    """The non-empty lines of a text file. Raises ConfigError if it cannot be read or has too few of them."""
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} must be a text in UTF-8, but is not: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    if len(lines) < 2 * settings.subjects:
        raise ConfigError(
            f"{path} must have two lines for each of {settings.subjects} subjects, got {len(lines)} that are "
            "not empty; lower dataset.subjects"
        )
    return lines


def _tokens(line: str, settings: Text) -> list[str]:
    return [END, *tokenize(line, settings.unit), END]


def _examples(lines: list[str], chosen: np.ndarray, table: dict[str, int], settings: Text) -> Split:
    """The examples of the lines with numbers `chosen [n]`, and the author of each."""
    counts = np.zeros(len(chosen), np.int64)
    with SpillBuffer() as x, SpillBuffer() as y:
        for number, line in enumerate(chosen.tolist()):
            inputs, targets = windows(encode_tokens(_tokens(lines[line], settings), table), settings.length)
            x.add(inputs)
            y.add(targets)
            counts[number] = len(inputs)
        author = chosen * settings.subjects // len(lines)
        return Split(*(torch.from_numpy(array) for array in (x.to_array(), y.to_array(), np.repeat(author, counts))))
