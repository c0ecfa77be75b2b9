"""Text as numbers: cut into characters or words, and numbered by a vocabulary. Legend: V size of a vocabulary."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Literal

import numpy as np

Unit = Literal["characters", "words"]
UNKNOWN = "<unk>"


def tokenize(text: str, unit: Unit) -> list[str]:
    """The characters of a text, or its words and signs without the blanks between them."""
    return list(text) if unit == "characters" else re.findall(r"\w+|[^\w\s]", text)


def vocabulary(texts: Iterable[list[str]], most: int) -> tuple[str, ...]:
    """`<unk>`, then the `most` frequent tokens, of which equally frequent ones are in alphabetical order."""
    counts = Counter(token for tokens in texts for token in tokens)
    ranked = sorted(counts, key=lambda token: (-counts[token], token))
    return (UNKNOWN, *ranked[:most])


def encode_tokens(tokens: list[str], names: dict[str, int]) -> np.ndarray:
    """The numbers `[L]` of L tokens, int64; 0 for those that the vocabulary `names` does not hold."""
    return np.array([names.get(token, 0) for token in tokens], np.int64)
