"""The two errors that end a command, each with its exit code, and the hint for a mistyped name."""

import difflib
import os
import re
import traceback
from collections.abc import Mapping, Sequence

MAX_LISTED = 40  # names that are still listed one by one
MAX_CLOSEST = 8  # of more than those
_CLOSE = 0.6  # share of the letters that a name must have in common with another to be meant
MAX_MESSAGE = 400  # characters of an exception's words that are shown


def full_error() -> bool:
    """Whether the user asked for tracebacks."""
    return "1" in (os.environ.get("FEDEXP_DEBUG"), os.environ.get("HYDRA_FULL_ERROR"))


class OneLineError(BaseException):
    """An error whose message says all that its user needs."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows of it, in a notebook, in place of the frames of this package."""
        if full_error():
            return traceback.format_exception(self)
        return [f"{type(self).__name__}: {self}"]


class ConfigError(OneLineError, ValueError):
    """What was asked cannot be done; the message is one readable line and the exit code is 2."""


class RunError(OneLineError, RuntimeError):
    """A run that had to end; the message says why in words that help, and the exit code is 1."""


def did_you_mean(name: str, names: Sequence[str]) -> str:
    """A hint for a mistyped name: the closest known ones; where nothing is close all of them, of many the first few."""
    return nearest_hint(name, names) or "known: " + (
        ", ".join(sorted(names)) if len(names) <= MAX_LISTED else closest_names(name, names)
    )


def nearest_hint(name: str, names: Sequence[str]) -> str:
    """`did you mean ...?` with the closest known names; empty where nothing is close."""
    same = [candidate for candidate in names if normalize_word(candidate) == normalize_word(name)]
    close = same or _close_names(name, names)
    return f"did you mean {' or '.join(close)}?" if close else ""


def _close_names(name: str, names: Sequence[str]) -> list[str]:
    """At most three names, each nearly as close as the closest; that two methods begin with "fed" says nothing."""
    pairs = sorted(((_closeness(candidate, name), candidate) for candidate in names), reverse=True)[:3]
    return [candidate for ratio, candidate in pairs if ratio >= max(_CLOSE, 0.7 * pairs[0][0])]


def _closeness(candidate: str, name: str) -> float:
    """The share of letters that two names have in common, from 0 to 1."""
    skipped = 3 * (candidate.startswith("fed") and name.startswith("fed"))
    return difflib.SequenceMatcher(None, candidate[skipped:], name[skipped:]).ratio()


def normalize_word(word: str) -> str:
    """A word as it is compared with others: without case, blanks, dashes and underscores."""
    return re.sub(r"[\s_-]", "", word).lower()


def closest_names(name: str, names: Sequence[str], comma: str = ", ") -> str:
    """The few names of a long list that resemble a mistyped one most, and how many there are; all of a short list."""
    if len(names) <= MAX_CLOSEST:
        return comma.join(names)
    matcher = difflib.SequenceMatcher(b=name.lower())  # it remembers what it knows of b

    def dissimilarity(candidate: str) -> float:
        matcher.set_seq1(candidate.lower())
        return -matcher.ratio()

    return comma.join(sorted(names, key=dissimilarity)[:MAX_CLOSEST]) + f"{comma}... ({len(names)} in all)"


def first_line(error: BaseException) -> str:
    """An exception's message in one line, shortened if very long; a user's exception may fail to give any."""
    try:
        line = next(iter(str(error).strip().splitlines()), "")
    except BaseException as inner:
        return f"(its __str__ raised {type(inner).__name__})"
    return line if len(line) <= MAX_MESSAGE else f"{line[:MAX_MESSAGE]}... ({len(line):,} characters)"


def missing_package_hint(node: object) -> str:
    """The hint about a config node that describes a part of an unknown group; empty for any other value."""
    target = node.get("_target_") if isinstance(node, Mapping) else None
    return f"it is a group of a package that is not installed; install the one that has {target}" if target else ""
