"""`fedexp list [GROUP [OPTION]]`: what can be chosen."""

import sys

from fedexp.commands import listing
from fedexp.config.location import conf_dir
from fedexp.core.errors import ConfigError


def act(words: list[str]) -> int:
    """Shows all groups, the options of one, or the keys of an option."""
    names = words[0].split("=") if len(words) == 1 else words
    if len(names) > 2:
        raise ConfigError(f"list shows a group or one of its options, got {len(names)} words: {' '.join(words)}")
    show = (listing.all_groups, listing.one_group, listing.one_option)[len(names)]
    sys.stdout.write(show(conf_dir(), *names))
    return 0
