"""Show what can be chosen: groups, the options of a group, the keys of an option.

* marks the default. E.g. fedexp list; fedexp list selector; fedexp list selector greedyfed
"""

import sys
from argparse import Namespace

from fedexp.commands import listing
from fedexp.commands.arguments import candidates
from fedexp.commands.arguments.parsing import Parser
from fedexp.config.location import conf_dir
from fedexp.core.errors import ConfigError


def build_parser() -> Parser:
    """Declares at most two words: a group, and one of its options."""
    parser = Parser("list [GROUP [OPTION]] [--config-dir DIR]", __doc__)
    parser.words("names", _completions)
    parser.add_config_dir("show your own options in DIR too, marked +")
    return parser


def act(words: list[str]) -> int:
    """Shows all groups, the options of one, or the keys of an option."""
    arguments = build_parser().read(words)
    names = arguments.names[0].split("=") if len(arguments.names) == 1 else arguments.names
    if len(names) > 2:
        raise ConfigError(f"list shows a group or one of its options, got {len(names)} words: {' '.join(names)}")
    show = (listing.describe_groups, listing.describe_group, listing.describe_option)[len(names)]
    sys.stdout.write(show(conf_dir(), *names, config_dir=arguments.config_dir))
    return 0


def _completions(arguments: Namespace, _: str) -> list[str]:
    if len(arguments.names) == 1:
        return candidates.options(arguments.names[0], arguments.config_dir)
    return [] if arguments.names else candidates.groups(arguments.config_dir)
