"""Looks up words of papers and other tools, after they were refused.

A word is compared without case, blanks, dashes and underscores.
"""

import re
import shlex
from contextlib import suppress

from fedexp.config.vocabulary.absent import NEAREST
from fedexp.config.vocabulary.keys import KEYS, METRICS
from fedexp.config.vocabulary.options import OPTIONS
from fedexp.core.errors import normalize_word


def option_synonym(group: str, name: str) -> str | None:
    """The words that choose what others call by an option's `name`; None for a word that nobody uses."""
    return OPTIONS.get(group, {}).get(normalize_word(name))


def nearest_in_kind(name: str) -> str | None:
    """The words for what comes nearest to a known method that is not here; None for a word that nobody uses."""
    return NEAREST.get(normalize_word(name))


def any_option_synonym(name: str) -> str | None:
    """The words that choose what others call by this name, in whatever group; None for a word that nobody uses."""
    words = (names.get(normalize_word(name)) for names in OPTIONS.values())
    return next(filter(None, words), None)


def key_synonym(key: str, value: str = "") -> str | None:
    """The words that set what others call by this key, to this value; None for a word that nobody uses."""
    words = KEYS.get(normalize_word(key))
    return words and re.sub(r"\{(.*?)\}", lambda match: _fitting(value, match[1]), words)


def _fitting(value: str, example: str) -> str:
    """A value that was typed if it may stand where the example does, else the example."""
    text = {"gpu": "cuda"}.get(value, value.strip("[]") if "," in example else value)
    if not text or shlex.quote(text) != text or ("," in example and "," not in text):
        return example
    return text if example.isupper() or _are_numbers(text) == _are_numbers(example) else example


def _are_numbers(text: str) -> bool:
    with suppress(ValueError):
        return bool([float(entry) for entry in text.split(",")])
    return False


def metric_synonym(word: str) -> str | None:
    """What to write for a metric that is unknown here; None if nobody knows the word."""
    return METRICS.get(normalize_word(word))
