"""Write the three files of a part of your own, which runs.

They are mine/NAME.py, a part of the group that does something simple and says where yours goes; conf/GROUP/NAME.yaml,
its keys; tests/test_NAME.py, a short run. Nothing is overwritten. GROUP is a group of fedexp list whose options are
parts: selector, aggregator, model and so on.
"""

import errno
import shlex
import sys
from pathlib import Path

from fedexp.commands.parsing import Parser, below, folder
from fedexp.core.errors import ConfigError
from fedexp.core.files import shown
from fedexp.new.new import groups, trial, write


def parser() -> Parser:
    """Declares a group and a name."""
    made = Parser("new GROUP NAME [--into DIR]", __doc__)
    made.words("names", lambda asked, _: () if asked.names else groups())
    made.flag("where to write them (default: here)", "--into", type=folder, default=Path(), values=below, metavar="DIR")
    return made


def act(words: list[str]) -> int:
    """Writes an own part, and tells its files and the command that tries it."""
    asked = parser().read(words)
    if len(asked.names) != 2:
        told = " ".join(asked.names) or "none"
        raise ConfigError(f"new needs a group and a name, got {told}; e.g. fedexp new selector waiting")
    (group, name), into = asked.names, asked.into
    try:
        written = write(group, name, into)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.ENAMETOOLONG):
            raise
        raise ConfigError(f"cannot write below {shown(into)}: {error.strerror}; give another --into") from error
    there = "" if into.resolve() == Path.cwd() else f"cd {shlex.quote(shown(into))} && "
    sys.stdout.write("".join(f"{shown(path)}\n" for path in written) + f"\nTry it:  {there}{trial(group, name)}\n")
    return 0
