"""The two errors that end a command, each with its exit code, and the hint for a mistyped name."""

import difflib
from collections.abc import Mapping, Sequence

MANY = 40  # names that are still listed one by one
FEW = 8  # of more than those
LONGEST = 400  # characters of an exception's words that are shown


class ConfigError(ValueError):
    """What was asked cannot be done; the message is one readable line and the exit code is 2."""


class RunError(RuntimeError):
    """A run that had to end; the message says why in words that help, and the exit code is 1."""


def nearest(name: str, known: Sequence[str]) -> str:
    """A hint for a mistyped name: the closest known ones; where nothing is close all of them, of many the first few."""
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        best = difflib.SequenceMatcher(None, close[0], name).ratio()
        close = difflib.get_close_matches(name, close, n=3, cutoff=0.7 * best)  # only those nearly as close
        return "did you mean " + " or ".join(close) + "?"
    return "known: " + (", ".join(sorted(known)) if len(known) <= MANY else some(name, known))


def some(name: str, known: Sequence[str], comma: str = ", ") -> str:
    """The few names of a long list that resemble a mistyped one most, and how many there are; all of a short list."""
    if len(known) <= FEW:
        return comma.join(known)
    alike = difflib.SequenceMatcher(b=name.lower())  # it remembers what it knows of b

    def unlike(other: str) -> float:
        alike.set_seq1(other.lower())
        return -alike.ratio()

    return comma.join(sorted(known, key=unlike)[:FEW]) + f"{comma}... ({len(known)} in all)"


def first_line(error: BaseException) -> str:
    """An exception's message in one line, shortened if very long; a user's exception may fail to give any."""
    try:
        line = next(iter(str(error).strip().splitlines()), "")
    except BaseException as inner:
        return f"(its __str__ raised {type(inner).__name__})"
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}... ({len(line):,} characters)"


def absent_part(node: object) -> str:
    """The hint about a config node that describes a part of an unknown group; empty for any other value."""
    target = node.get("_target_") if isinstance(node, Mapping) else None
    return f"it is a group of a package that is not installed; install the one that has {target}" if target else ""
