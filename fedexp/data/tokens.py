"""Text as numbers: cut into characters or words, and numbered by a vocabulary. Legend: V size of a vocabulary."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Unit = Literal["characters", "words"]
UNKNOWN = "<unk>"


@dataclass(frozen=True)
class TextFormat:
    """How a text becomes tokens; `column` is where it stands in a table, empty where texts are no rows of one."""

    unit: Unit
    column: str = ""


def tokenize(text: str, unit: Unit) -> list[str]:
    """The characters of a text, or its words and signs without the blanks between them."""
    return list(text) if unit == "characters" else re.findall(r"\w+|[^\w\s]", text)


def vocabulary(texts: Iterable[list[str]], most: int) -> tuple[str, ...]:
    """`<unk>`, then the `most` frequent tokens, of which equally frequent ones are in alphabetical order."""
    counts = Counter(token for tokens in texts for token in tokens)
    ranked = sorted(counts, key=lambda token: (-counts[token], token))
    return (UNKNOWN, *ranked[:most])


def encode_tokens(tokens: list[str], names: dict[str, int]) -> np.ndarray:
    """The numbers `[L]` of L tokens, int64; 0 for those that `names` does not hold.

    `names` gives the number of each token: `{name: number for number, name in enumerate(vocabulary)}`.
    """
    return np.array([names.get(token, 0) for token in tokens], np.int64)


def encode_texts(texts: Sequence[str], unit: Unit, names: Sequence[str], length: int) -> np.ndarray:
    """S texts as int64 `[S, length]`, cut or filled up with 0; `names [V]` is the vocabulary."""
    numbers = {name: number for number, name in enumerate(names)}
    array = np.zeros((len(texts), length), np.int64)
    for row, text in zip(array, texts, strict=True):
        tokens = tokenize(text, unit)[:length]
        row[: len(tokens)] = encode_tokens(tokens, numbers)
    return array
