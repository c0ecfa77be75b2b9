"""Text, line by line: the next character or word is to be predicted from those before it.

The lines of a file are dealt out in order: `subjects` authors have a consecutive part each, for `federation=subject`.
Of a folder every text file is an author, named like the file. A share of the lines (of a folder: of each file's,
rounded down) is for testing, the same in every run whatever its seed. A line becomes examples of `length` tokens; it
begins after the end of a line and ends with one, and what is left at the end of an example is not to be predicted. The
vocabulary is that of the training lines; other tokens are `<unk>`. Legend: W examples, L length.
"""

import os
import sys
import sysconfig
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import numpy as np
import torch

from fedexp.core.errors import ConfigError
from fedexp.core.part import Range
from fedexp.core.random_streams import stream
from fedexp.data.pile import SpillBuffer
from fedexp.data.store import find_user_file, find_user_path, stamp
from fedexp.data.tables.encoding import held_out_mask
from fedexp.data.tokens import TextFormat, Unit, encode_tokens, tokenize, vocabulary
from fedexp.parts.dataset.contract import IGNORED, Data, Dataset, Facts, Split

END = "<line>"
LICENCE = "LICENSE.txt"
TABLES = (".csv", ".tsv", ".parquet")
ENDING = ".txt"  # of the files of a folder


def windows(tokens: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Examples and targets `[W, L]` of a sequence of tokens, each of which but the first is predicted once."""
    count = -(-(len(tokens) - 1) // length)
    x, y = np.zeros(count * length, np.int64), np.full(count * length, IGNORED, np.int64)
    x[: len(tokens) - 1], y[: len(tokens) - 1] = tokens[:-1], tokens[1:]
    return x.reshape(count, length), y.reshape(count, length)


class Text(Dataset):
    """Without a `file` it is Python's own licence; `file` may be a folder, whose files are the authors.

    `vocabulary` bounds the number of different tokens.
    """

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

    def refuse_subjects(self, directory: Path, clients: int) -> None:
        folder = None if self.subjects == clients else self._folder(directory)
        if folder is not None:
            raise ConfigError(
                f"dataset.subjects does nothing where dataset.file is a folder, got {self.subjects} for {folder}, "
                "whose files are the authors; leave it out"
            )

    def verify(self, directory: Path) -> list[str]:
        data = self.load(directory, 0)
        count = len(data.train.y) + len(data.test.y)
        summary = f"{count:,} examples of {self.length} {self.unit}, {len(data.class_names):,} different ones"
        source = self._folder(directory) or self._file(directory)
        return [f"{source} holds {summary} (any text will do: there is no checksum)"]

    def download(self, directory: Path) -> None:
        raise ConfigError("dataset=text has no source to download from: it reads your own file; set dataset.file=...")

    def load(self, directory: Path, seed: int) -> Data:
        folder = self._folder(directory)
        if folder is None:
            return _parse(self, stamp(self._file(directory)))
        files = sorted(path for path in folder.glob(f"*{ENDING}") if path.is_file() and not path.name.startswith("."))
        if not files:
            raise ConfigError(f"dataset.file must be a text, or a folder with files *{ENDING}, but {folder} has none")
        return _parse(self, stamp(*files), tuple(path.stem for path in files))

    def _folder(self, directory: Path) -> Path | None:
        """The folder whose files are the authors; None where one file holds all."""
        if self.file is None or find_user_path(self.file, directory, os.path.isfile) is not None:
            return None
        return find_user_path(self.file, directory, os.path.isdir)

    def _file(self, directory: Path) -> Path:
        if self.file is not None:
            path = find_user_file(self.file, directory, "dataset.file", "text")
            if path.suffix in TABLES:
                raise ConfigError(
                    f"dataset.file must be a text, but {path.name} is a table: dataset=table takes tables, and "
                    "labelled texts come from dataset=huggingface"
                )
            return path
        candidates = [Path(candidate) / LICENCE for candidate in (sysconfig.get_path("stdlib"), sys.base_prefix)]
        licence = next((candidate for candidate in candidates if candidate.is_file()), None)
        if licence is None:
            raise ConfigError(f"dataset.file must be given where Python has no {LICENCE}; set dataset.file=...")
        return licence


@lru_cache(maxsize=1)
def _parse(
    settings: Text, source: tuple[tuple[str, int, int], ...], author_names: tuple[str, ...] | None = None
) -> Data:
    """Reads the files once for facts and examples, as long as their sizes and times stay.

    With `author_names` every file is an author's; else a single one is dealt out to `subjects`.
    """
    paths = [Path(path) for path, *_ in source]
    if author_names is None:
        lines = _lines(paths[0], settings)
        author, groups = np.arange(len(lines)) * settings.subjects // len(lines), np.zeros(len(lines), np.int64)
    else:
        texts = [_read_lines(path) for path in paths]
        lines = [line for text in texts for line in text]
        author = groups = np.repeat(np.arange(len(texts)), list(map(len, texts)))
        _refuse_empty(paths, texts)
    test = held_out_mask(groups, settings.test_fraction, stream(0, "text", "test"))
    if not test.any():
        raise ConfigError(
            f"dataset.test_fraction must give a line for testing, got {settings.test_fraction:g} of "
            f"{len(lines)} lines; raise it"
        )
    if author_names is None and (remaining := int((~test).sum())) < settings.subjects:
        raise ConfigError(
            f"dataset.test_fraction must leave a training line for each of {settings.subjects} subjects, got "
            f"{settings.test_fraction:g} of {len(lines)} lines, which leaves {remaining}; lower it or dataset.subjects"
        )
    names = vocabulary((_tokens(lines[line], settings) for line in np.flatnonzero(~test)), settings.vocabulary)
    table = {name: number for number, name in enumerate(names)}
    train, test_examples = (
        _examples([lines[line] for line in np.flatnonzero(chosen)], author[chosen], table, settings)
        for chosen in (~test, test)
    )
    text = TextFormat(settings.unit)
    return Data(train, test_examples, names, vocabulary=names, text=text, subject_names=author_names)


def _lines(path: Path, settings: Text) -> list[str]:
    """The lines of a text that is dealt out to authors. Raises ConfigError if it has too few of them."""
    lines = _read_lines(path)
    if len(lines) < 2 * settings.subjects:
        raise ConfigError(
            f"{path} must have two lines for each of {settings.subjects} subjects, got {len(lines)} that are "
            "not empty; lower dataset.subjects"
        )
    return lines


def _read_lines(path: Path) -> list[str]:
    """The lines of a text file that are not empty. Raises ConfigError if it cannot be read."""
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} must be a text in UTF-8, but is not: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None


def _refuse_empty(paths: Sequence[Path], texts: Sequence[Sequence[str]]) -> None:
    """Raises ConfigError where the file of an author has no line."""
    if empty := [path for path, text in zip(paths, texts, strict=True) if not text]:
        raise ConfigError(f"{empty[0]} must have a line that is not empty, got none; remove it from the folder")


def _tokens(line: str, settings: Text) -> list[str]:
    return [END, *tokenize(line, settings.unit), END]


def _examples(lines: list[str], author: np.ndarray, table: dict[str, int], settings: Text) -> Split:
    """The examples of n lines, whose authors are `author [n]`."""
    counts = np.zeros(len(lines), np.int64)
    with SpillBuffer() as x, SpillBuffer() as y:
        for number, line in enumerate(lines):
            inputs, targets = windows(encode_tokens(_tokens(line, settings), table), settings.length)
            x.add(inputs)
            y.add(targets)
            counts[number] = len(inputs)
        return Split(*(torch.from_numpy(array) for array in (x.to_array(), y.to_array(), np.repeat(author, counts))))
