"""Write the three files of a part of your own, which runs.

They are mine/NAME.py, a part of the group that does something simple and says where yours goes; conf/GROUP/NAME.yaml,
its keys; tests/test_NAME.py, a short run. Nothing is overwritten. GROUP is a group of fedexp list whose options are
parts: selector, aggregator, model and so on.
"""

import shlex
from pathlib import Path

from fedexp.commands.arguments.parsing import Parser, complete_folder, folder_path
from fedexp.core.errors import ConfigError
from fedexp.files.atomic import display_path
from fedexp.files.unwritable import explain_unwritable
from fedexp.new.new import groups, trial_command, write
from fedexp.process.terminal import print_text


def build_parser() -> Parser:
    """Declares a group and a name."""
    parser = Parser("new GROUP NAME [--into DIR]", __doc__)
    parser.words("names", lambda arguments, _: () if arguments.names else groups())
    help_text = "where to write them (default: here)"
    parser.add_flag(help_text, "--into", type=folder_path, default=Path(), values=complete_folder, metavar="DIR")
    return parser


def act(words: list[str]) -> int:
    """Writes an own part, and tells its files and the command that tries it."""
    arguments = build_parser().read(words)
    if len(arguments.names) != 2:
        received_names = " ".join(arguments.names) or "none"
        raise ConfigError(f"new needs a group and a name, got {received_names}; e.g. fedexp new selector waiting")
    (group, name), into = arguments.names, arguments.into
    with explain_unwritable(into, "--into"):
        written = write(group, name, into)
    change_folder = "" if into.resolve() == Path.cwd() else f"cd {shlex.quote(display_path(into))} && "
    print_text(
        "".join(f"{display_path(path)}\n" for path in written)
        + f"\nTry it:  {change_folder}{trial_command(group, name)}\n"
    )
    return 0
