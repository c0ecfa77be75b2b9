"""`fedexp run`: flags and overrides read, the work left to `fedexp.commands.launch`."""

import sys

from fedexp.commands.run_flags import parse
from fedexp.config.location import conf_dir


def act(words: list[str]) -> int:
    """Runs an experiment, or shows its config or the help."""
    flags = parse(words)
    if flags.help:
        from fedexp.commands.listing import run_help

        sys.stdout.write(run_help(conf_dir()))
        return 0
    from fedexp.commands.launch import launch

    return launch(flags)
