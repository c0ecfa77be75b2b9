"""Show what can be chosen: groups, the options of a group, the keys of an option.

* marks the default. E.g. fedexp list; fedexp list selector; fedexp list selector greedyfed
"""

import sys
from argparse import Namespace

from fedexp.commands import listing, offered
from fedexp.commands.parsing import Parser
from fedexp.config.location import conf_dir
from fedexp.core.errors import ConfigError


def parser() -> Parser:
    """Declares at most two words: a group, and one of its options."""
    made = Parser("list [GROUP [OPTION]] [--config-dir DIR]", __doc__)
    made.words("names", _following)
    made.own_options("show your own options in DIR too, marked +")
    return made


def act(words: list[str]) -> int:
    """Shows all groups, the options of one, or the keys of an option."""
    asked = parser().read(words)
    names = asked.names[0].split("=") if len(asked.names) == 1 else asked.names
    if len(names) > 2:
        raise ConfigError(f"list shows a group or one of its options, got {len(names)} words: {' '.join(names)}")
    show = (listing.all_groups, listing.one_group, listing.one_option)[len(names)]
    sys.stdout.write(show(conf_dir(), *names, own=asked.config_dir))
    return 0


def _following(asked: Namespace, _: str) -> list[str]:
    if len(asked.names) == 1:
        return offered.options(asked.names[0], asked.config_dir)
    return [] if asked.names else offered.groups(asked.config_dir)
