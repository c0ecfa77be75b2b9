"""`fedexp new GROUP NAME [--into DIR]`: the words read, the work left to `fedexp.new`."""

import errno
import shlex
import sys
from pathlib import Path

from fedexp.core.errors import ConfigError
from fedexp.core.files import shown
from fedexp.new.new import trial, write

FLAGS = ("--into",)


def act(words: list[str]) -> int:
    """Writes an own part, and tells its files and the command that tries it."""
    group, name, into = read(words)
    try:
        written = write(group, name, into)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise
        raise ConfigError(f"cannot write below {shown(into)}: {error.strerror}; give another --into") from error
    there = "" if into.resolve() == Path.cwd() else f"cd {shlex.quote(shown(into))} && "
    sys.stdout.write("".join(f"{shown(path)}\n" for path in written) + f"\nTry it:  {there}{trial(group, name)}\n")
    return 0


def read(words: list[str]) -> tuple[str, str, Path]:
    """Splits the words into group, name and folder."""
    names: list[str] = []
    into = "."
    left = iter(words)
    for word in left:
        flag, equal, value = word.partition("=")
        if flag in FLAGS:
            into = value if equal else next(left, "")
        elif word.startswith("-"):
            raise ConfigError(f"unknown flag {word}; new knows --into DIR")
        else:
            names.append(word)
    if len(names) != 2:
        raise ConfigError(
            f"new needs a group and a name, got {' '.join(names) or 'none'}; e.g. fedexp new selector waiting"
        )
    if not into:
        raise ConfigError("--into must name a folder")
    return names[0], names[1], Path(into)
