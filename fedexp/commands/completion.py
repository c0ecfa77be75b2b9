"""`fedexp completion SHELL`: the script that a shell reads."""

import sys

from fedexp.commands.tab_completion import SCRIPTS
from fedexp.core.errors import ConfigError


def act(words: list[str]) -> int:
    """Prints the script."""
    if len(words) != 1 or words[0] not in SCRIPTS:
        raise ConfigError(f"completion needs a shell: {', '.join(SCRIPTS)}; got {' '.join(words) or 'none'}")
    sys.stdout.write(SCRIPTS[words[0]])
    return 0
