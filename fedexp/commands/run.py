"""`fedexp run`: flags and overrides read, the work left to `fedexp.launch`."""

import sys

from fedexp.conf_dir import conf_dir
from fedexp.flags import parse


def act(words: list[str]) -> int:
    """Runs an experiment, or shows its config or the help."""
    flags = parse(words)
    if flags.help:
        from fedexp.listing import run_help

        sys.stdout.write(run_help(conf_dir()))
        return 0
    from fedexp.launch import launch

    return launch(flags)
