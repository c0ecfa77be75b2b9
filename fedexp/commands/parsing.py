"""One declaration for each command: its help, how its words are read and how they are completed are one parser's."""

import argparse
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from fedexp.core.errors import ConfigError, nearest

COMMANDS = (
    "run",
    "plan",
    "resume",
    "search",
    "report",
    "compare",
    "verify",
    "replay",
    "list",
    "new",
    "data",
    "completion",
)

Wrong = argparse.ArgumentTypeError  # what the `type` of a flag raises; the flag's name is put in front
Values = Callable[[str], Iterable[str]]  # what a half-typed value may become
Words = Callable[[argparse.Namespace, str], Iterable[str]]  # the same of a word, after the words before it


class Parser(argparse.ArgumentParser):
    """The words and flags of a command; flags may stand anywhere between the words."""

    def __init__(self, usage: str, told: str | None, more: Callable[[], str] = str) -> None:
        """Declares only --help, which shows `purpose` and what `extra_help` returns at that time."""
        super().__init__(
            prog=f"fedexp {usage.split()[0]}",
            usage=f"fedexp {usage}",
            formatter_class=_Help,
            add_help=False,
            allow_abbrev=False,
        )
        self.told, self.more = told or "", more
        self.flags: dict[str, argparse.Action] = {}
        self.values: dict[str, Values] = {}
        self.following: Words = lambda *_: ()
        self.flag("show this help", "-h", "--help", action="store_true")

    def flag(self, told: str, *names: str, values: Values | Sequence[str] = (), **how: Any) -> None:
        """Declares a flag as `add_argument` does; `values` are those allowed, or a function that completes a value."""
        if how.get("action") != "store_true":
            self.values |= dict.fromkeys(names, values if callable(values) else lambda _: values)
            closed = {} if callable(values) or not values else {"type": one_of(values), "metavar": "|".join(values)}
            how = {"type": given, **closed, **how}
        self.flags |= dict.fromkeys(names, self.add_argument(*names, help=told, **how))

    def own_options(self, told: str) -> None:
        """Declares --config-dir."""
        self.flag(told, "-cd", "--config-dir", type=present, values=below, metavar="DIR")

    def words(self, name: str, following: Words) -> None:
        """Declares the positional words: a list under `name`, and a function that completes the next one."""
        self.add_argument(name, nargs="*", help=argparse.SUPPRESS)
        self.following = following

    def read(self, words: Sequence[str], asked: argparse.Namespace | None = None) -> argparse.Namespace:
        """The values of flags and the words, added to those already in `namespace`.

        Raises:
            ConfigError: a flag is not known, or its value is not what it must be.
        """
        read, unknown = self.parse_known_intermixed_args(list(words), asked or argparse.Namespace())
        if unknown:
            flag = next((word for word in unknown if word.startswith("-")), unknown[0]).partition("=")[0]
            raise ConfigError(f"unknown flag {flag}; {self._instead(flag)}")
        return read

    def _instead(self, flag: str) -> str:
        """Suggests what to write instead of a flag that this command does not have."""
        if others := [word for word in COMMANDS if flag in parser_of(word).flags]:
            return f"it belongs to {', '.join(others)}"
        if "key=value" in str(self.usage) and not get_close_matches(flag, long_names(self), cutoff=0.7):
            return f"keys are written without dashes: {flag.strip('-').replace('-', '_')}=VALUE"
        return nearest(flag, long_names(self))

    def format_help(self) -> str:
        """The usage, what the command is for, and its flags."""
        self.description = self.told + self.more()
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """Turns argparse's message into one line of ours; a missing value is refused like an empty one."""
        found = re.match(r"argument (?:\S*/)?(--[a-z-]+): (.*)", message, re.DOTALL)
        if found is None:
            raise ConfigError(f"{message}; see {self.prog} --help")
        flag, said = found.groups()
        if said == "expected one argument":
            self.read([f"{flag}="])
        raise ConfigError(f"{flag} {said.replace('ignored explicit argument', 'takes no value, got')}")


class _Help(argparse.RawDescriptionHelpFormatter):
    """Shows explanations with their line breaks, and flags with their value once."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=min(shutil.get_terminal_size().columns, 120))

    def _format_action_invocation(self, action: argparse.Action) -> str:
        return " ".join((", ".join(action.option_strings), str(action.metavar or ""))).rstrip()


def parser_of(word: str) -> Parser:
    """The parser that the module of a command declares."""
    return import_module(f"fedexp.commands.{word}").parser()


def long_names(parser: Parser) -> list[str]:
    """The flags of a command as they are written out."""
    return [name for name in parser.flags if name.startswith("--")]


def must(be: str, good: Callable[[str], bool], read: Callable[[str], Any] = str) -> Callable[[str], Any]:
    """A function for `type=` that reads a valid value, or raises an error that says what it must be."""

    def reading(text: str) -> Any:
        if not good(text):
            raise Wrong(f"must be {be}, got {text or 'none'}")
        return read(text)

    return reading


def one_of(names: Sequence[str]) -> Callable[[str], str]:
    """A function for `type=` that reads one of these names."""
    return must(f"one of {', '.join(names)}", lambda text: text in names)


def whole(least: int) -> Callable[[str], int]:
    """A function for `type=` that reads an integer of at least this value."""
    return must(f"an integer >= {least}", lambda text: text.isdecimal() and int(text) >= least, int)


def _path(text: str) -> Path:
    with suppress(RuntimeError):  # there is no such user
        return Path(text).expanduser()
    return Path(text)


given = must("given", bool)
folder = must("a folder", bool, _path)  # which need not be there
present = must("a folder", lambda text: bool(text) and _path(text).is_dir(), lambda text: _path(text).absolute())


def below(typed: str) -> list[str]:
    """Completes the path of a folder, one level at a time."""
    parent = Path(typed[: typed.rfind("/") + 1] or ".")
    return [f"{path}/" for path in parent.glob("*") if path.is_dir()] if parent.is_dir() else []
