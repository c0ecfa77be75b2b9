"""Texts of users: odd ones, in odd encodings, cut in odd ways, and damaged."""

from collections.abc import Callable, Iterator

import numpy as np

from scripts.fuzz.judged import Input
from scripts.fuzz.users_files import damaged, run_on, unless_given, written

LINES = "".join(f"the {word} of line {line}, and then\n" for line, word in enumerate("abcdefghijklmnopqrst"))
TEXTS: dict[str, Callable[[], bytes]] = {
    "lines": lambda: LINES.encode(),
    "nothing": lambda: b"",
    "a letter": lambda: b"a",
    "a line": lambda: b"abc\n",
    "two lines": lambda: b"a\nb\n",
    "blank lines": lambda: b"\n \n\t\n" * 30,
    "one letter a line": lambda: b"a\n" * 30,
    "the same line": lambda: b"abc abc\n" * 30,
    "no line end": lambda: LINES.replace("\n", " ").encode(),
    "carriage returns": lambda: LINES.replace("\n", "\r").encode(),
    "form feeds": lambda: LINES.replace("\n", "\f").encode(),
    "line separators": lambda: LINES.replace("\n", "\u2028").encode(),
    "next lines": lambda: LINES.replace("\n", "\x85").encode(),
    "NUL": lambda: LINES.replace("e", "\0").encode(),
    "NUL alone": lambda: bytes(900),
    "UTF-16": lambda: LINES.encode("utf-16"),
    "UTF-32": lambda: LINES.encode("utf-32"),
    "a byte order mark": lambda: LINES.encode("utf-8-sig"),
    "two byte order marks": lambda: b"\xef\xbb\xbf" + LINES.encode("utf-8-sig"),
    "Latin-1": lambda: LINES.replace("a", "é").encode("latin-1"),
    "a surrogate": lambda: LINES.replace("a", "\ud800").encode(errors="surrogatepass"),
    "an overlong byte": lambda: b"\xc0\x80" + LINES.encode(),
    "cut in a letter": lambda: LINES.encode() + b"\xe2\x82",
    "emoji": lambda: LINES.replace("e", "\U0001f469\u200d\U0001f680").encode(),
    "combining": lambda: LINES.replace("e", "e\u0301\u0301").encode(),
    "right to left": lambda: LINES.replace("the", "\u202e\u05d0").encode(),
    "escapes": lambda: LINES.replace("the", "\x1b[2J\x07").encode(),
    "signs": lambda: b"!?.,;:-()[]{}\n" * 30,
    "its own names": lambda: b"<unk> <line> <line>\n" * 30,
    "tabs": lambda: LINES.replace(" ", "\t").encode(),
    "zero width": lambda: LINES.replace(" ", "\u200b").encode(),
    "1,000 different letters": lambda: "\n".join(chr(0x4E00 + number) * 2 for number in range(1_000)).encode(),
    "a long line": lambda: b"abc " * 2_000,
    "a long word": lambda: b"x" * 5_000 + b"\n" + LINES.encode(),
    "many short lines": lambda: b"ab\n" * 300,
    "noise": lambda: np.random.default_rng(0).bytes(900),
    "printable noise": lambda: bytes(np.random.default_rng(0).integers(32, 127, 900, dtype=np.uint8)),
    "a zip archive": lambda: b"PK\x03\x04" + bytes(50),
    "JSON": lambda: b'{"a": [1, 2, "x"]}\n' * 20,
}
NETWORK = ("model.hidden=4", "model.layers=1")
WORDS = (
    *((), ("dataset.unit=words",), ("dataset.length=1",), ("dataset.length=3", "dataset.unit=words")),
    *(("dataset.vocabulary=1",), ("dataset.vocabulary=2", "dataset.unit=words"), ("dataset.test_fraction=0.9999",)),
    *(("dataset.test_fraction=1e-9",), ("dataset.test_fraction=0.5", "scenario.clients=2"), ("scenario.clients=1",)),
    *(("scenario.clients=500",), ("dataset.subjects=1", "federation=iid"), ("dataset.length=500",)),
    *(("federation=classes",), ("federation=dirichlet",), ("evaluation.validation=true",), ("engine=stacked",)),
)
DAMAGED = 120


def texts() -> Iterator[Input]:
    """Every text with all words, and damaged ones."""
    for what, content in TEXTS.items():
        for words in WORDS:
            yield _text(what, content, words)
    for number in range(DAMAGED):
        words = WORDS[number % len(WORDS)]
        yield _text(f"damage {number}", lambda number=number: damaged(LINES.encode(), number), words)


def _text(what: str, content: Callable[[], bytes], words: tuple[str, ...]) -> Input:
    usual = (
        "dataset=text",
        "dataset.file=mine/text.txt",
        "scenario.clients=3",
        "dataset.length=20",
        "engine=loop",
        *NETWORK,
    )
    return run_on(written("text.txt", content), what, *unless_given(usual, words))
