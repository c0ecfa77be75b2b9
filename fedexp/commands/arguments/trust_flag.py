"""`--trust-modules`: the modules that a folder may import."""

import re
from argparse import Namespace

from fedexp.commands.arguments.parsing import InvalidArgument, Parser
from fedexp.config.trust import Trust

TRUST_MODULES = "--trust-modules"
_MODULE_NAMES = re.compile(r"\w+(\.\w+)*(,\w+(\.\w+)*)*")


def add_trust_flag(parser: Parser) -> None:
    """Adds --trust-modules to a command."""
    help_text = "import these modules, though they were never run on this machine, or have changed since"
    parser.add_flag(help_text, TRUST_MODULES, type=_modules, action="extend", default=[], metavar="A,B")


def trust_of(arguments: Namespace) -> Trust:
    """The trust that the flags express."""
    return Trust(tuple(arguments.trust_modules), getattr(arguments, "config_dir", None))


def _modules(value: str) -> list[str]:
    if not _MODULE_NAMES.fullmatch(value):
        raise InvalidArgument(f"needs names of modules, e.g. {TRUST_MODULES} mine; got {value or 'none'}")
    return value.split(",")
