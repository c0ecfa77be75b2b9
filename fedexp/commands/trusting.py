"""`--trust-modules MODULE,...`: modules that the user trusts when a folder is resumed."""

import re
from argparse import Namespace

from fedexp.commands.parsing import Parser, Wrong
from fedexp.config.trust import Trust

MODULES = "--trust-modules"
_NAMES = re.compile(r"\w+(\.\w+)*(,\w+(\.\w+)*)*")


def vouch(parser: Parser) -> None:
    """Adds --trust-modules to a command."""
    told = "import these modules, though they were never run on this machine"
    parser.flag(told, MODULES, type=_modules, action="extend", default=[], metavar="A,B")


def trust_of(asked: Namespace) -> Trust:
    """The trust that the flags express."""
    return Trust(tuple(asked.trust_modules), getattr(asked, "config_dir", None))


def _modules(value: str) -> list[str]:
    if not _NAMES.fullmatch(value):
        raise Wrong(f"needs names of modules, e.g. {MODULES} mine; got {value or 'none'}")
    return value.split(",")
