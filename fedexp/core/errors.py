"""The two errors that end a command, each with its exit code, and the hint for a mistyped name."""

import difflib
from collections.abc import Mapping, Sequence


class ConfigError(ValueError):
    """What was asked cannot be done; the message is one readable line and the exit code is 2."""


class RunError(RuntimeError):
    """A run that had to end; the message says why in words that help, and the exit code is 1."""


def nearest(name: str, known: Sequence[str]) -> str:
    """A hint for a mistyped name: the closest known ones, or all of them when nothing is close."""
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        best = difflib.SequenceMatcher(None, close[0], name).ratio()
        close = difflib.get_close_matches(name, close, n=3, cutoff=0.7 * best)  # only those nearly as close
        return "did you mean " + " or ".join(close) + "?"
    return "known: " + ", ".join(sorted(known))


def first_line(error: BaseException) -> str:
    """What an exception says, in one line."""
    return next(iter(str(error).strip().splitlines()), "")


def absent_part(node: object) -> str:
    """What is said of a config that describes a part, where its group is unknown; nothing of any other value."""
    target = node.get("_target_") if isinstance(node, Mapping) else None
    return f"it is a group of a package that is not installed; install the one that has {target}" if target else ""
