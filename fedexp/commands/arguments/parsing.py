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

from fedexp.config import catalog
from fedexp.config.location import conf_dir
from fedexp.config.vocabulary.synonyms import key_synonym
from fedexp.core.errors import ConfigError, did_you_mean

COMMANDS = (
    "run",
    "plan",
    "resume",
    "search",
    "contest",
    "report",
    "compare",
    "verify",
    "export",
    "predict",
    "replay",
    "list",
    "new",
    "data",
    "completion",
)

InvalidArgument = argparse.ArgumentTypeError  # what the `type` of a flag raises; the flag's name is put in front
ValueCompleter = Callable[[str], Iterable[str]]  # what a half-typed value may become
WordCompleter = Callable[[argparse.Namespace, str], Iterable[str]]  # the same of a word, after the words before it


class Parser(argparse.ArgumentParser):
    """The words and flags of a command; flags may stand anywhere between the words."""

    def __init__(self, usage: str, purpose: str | None, extra_help: Callable[[], str] = str) -> None:
        """Declares only --help, which shows `purpose` and what `extra_help` returns at that time."""
        super().__init__(
            prog=f"fedexp {usage.split()[0]}",
            usage=f"fedexp {usage}",
            formatter_class=_Help,
            add_help=False,
            allow_abbrev=False,
        )
        self.purpose, self.extra_help = purpose or "", extra_help
        self.flags: dict[str, argparse.Action] = {}
        self.values: dict[str, ValueCompleter] = {}
        self.completer: WordCompleter = lambda *_: ()
        self.add_flag("show this help", "-h", "--help", action="store_true")

    def add_flag(
        self, help_text: str, *names: str, values: ValueCompleter | Sequence[str] = (), **keywords: Any
    ) -> None:
        """Declares a flag as `add_argument` does; `values` are those allowed, or a function that completes a value."""
        if keywords.get("action") != "store_true":
            self.values |= dict.fromkeys(names, values if callable(values) else lambda _: values)
            choice_keywords = (
                {} if callable(values) or not values else {"type": one_of(values), "metavar": "|".join(values)}
            )
            keywords = {"type": nonempty_text, **choice_keywords, **keywords}
        self.flags |= dict.fromkeys(names, self.add_argument(*names, help=help_text, **keywords))

    def add_config_dir(self, help_text: str) -> None:
        """Declares --config-dir."""
        self.add_flag(help_text, "-cd", "--config-dir", type=existing_folder, values=complete_folder, metavar="DIR")

    def words(self, name: str, completer: WordCompleter) -> None:
        """Declares the positional words: a list under `name`, and a function that completes the next one."""
        self.add_argument(name, nargs="*", help=argparse.SUPPRESS)
        self.completer = completer

    def read(self, words: Sequence[str], namespace: argparse.Namespace | None = None) -> argparse.Namespace:
        """The values of flags and the words, added to those already in `namespace`.

        Raises:
            ConfigError: a flag is not known, or its value is not what it must be.
        """
        arguments, unknown = self.parse_known_intermixed_args(list(words), namespace or argparse.Namespace())
        if unknown:
            flag, _, value = next((word for word in unknown if word.startswith("-")), unknown[0]).partition("=")
            raise ConfigError(f"unknown flag {flag}; {self._suggestion(flag, value or _next_value(words, flag))}")
        return arguments

    def _suggestion(self, flag: str, value: str) -> str:
        """Suggests what to write instead of a flag, given with this value, that the command does not have."""
        key, takes_keys = flag.strip("-").replace("-", "_"), "key=value" in str(self.usage)
        if takes_keys and key in catalog.load(conf_dir() / "config.yaml"):
            return f"keys are written without dashes: {key}={value}"
        if get_close_matches(flag, long_names(self), cutoff=0.9):
            return did_you_mean(flag, long_names(self))
        if takes_keys and (synonym := key_synonym(key, value)):
            return f"write {synonym}"
        if commands := [word for word in COMMANDS if flag in parser_of(word).flags]:
            return f"it belongs to {', '.join(commands)}"
        if takes_keys and not get_close_matches(flag, long_names(self), cutoff=0.7):
            return f"keys are written without dashes: {key}={value}"
        return did_you_mean(flag, long_names(self))

    def format_help(self) -> str:
        """The usage, what the command is for, and its flags."""
        self.description = self.purpose + self.extra_help()
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """Turns argparse's message into one line of ours; a missing value is refused like an empty one."""
        match = re.match(r"argument (?:\S*/)?(--[a-z-]+): (.*)", message, re.DOTALL)
        if match is None:
            raise ConfigError(f"{message}; see {self.prog} --help")
        flag, problem = match.groups()
        if problem == "expected one argument":
            self.read([f"{flag}="])
        raise ConfigError(f"{flag} {problem.replace('ignored explicit argument', 'takes no value, got')}")


class _Help(argparse.RawDescriptionHelpFormatter):
    """Shows explanations with their line breaks, and flags with their value once."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=min(shutil.get_terminal_size().columns, 120))

    def _format_action_invocation(self, action: argparse.Action) -> str:
        return " ".join((", ".join(action.option_strings), str(action.metavar or ""))).rstrip()


def _next_value(words: Sequence[str], flag: str) -> str:
    """The word behind a flag if it can be its value, else VALUE."""
    behind = [*words, ""][list(words).index(flag) + 1] if flag in words else ""
    return behind if behind and not behind.startswith("-") and "=" not in behind else "VALUE"


def parser_of(word: str) -> Parser:
    """The parser that the module of a command declares."""
    return import_module(f"fedexp.commands.{word}").build_parser()


def long_names(parser: Parser) -> list[str]:
    """The flags of a command as they are written out."""
    return [name for name in parser.flags if name.startswith("--")]


def value_reader(
    requirement: str, is_valid: Callable[[str], bool], read: Callable[[str], Any] = str
) -> Callable[[str], Any]:
    """A function for `type=` that reads a valid value, or raises an error that says what it must be."""

    def read_value(text: str) -> Any:
        if not is_valid(text):
            raise InvalidArgument(f"must be {requirement}, got {text or 'none'}")
        return read(text)

    return read_value


def one_of(names: Sequence[str]) -> Callable[[str], str]:
    """A function for `type=` that reads one of these names."""
    return value_reader(f"one of {', '.join(names)}", lambda text: text in names)


def integer_at_least(least: int) -> Callable[[str], int]:
    """A function for `type=` that reads an integer of at least this value."""
    return value_reader(f"an integer >= {least}", lambda text: text.isdecimal() and int(text) >= least, int)


def _path(text: str) -> Path:
    with suppress(RuntimeError):  # there is no such user
        return Path(text).expanduser()
    return Path(text)


nonempty_text = value_reader("given", bool)
folder_path = value_reader("a folder", bool, _path)  # which need not be there
existing_folder = value_reader(
    "a folder", lambda text: bool(text) and _path(text).is_dir(), lambda text: _path(text).absolute()
)


def complete_folder(typed: str) -> list[str]:
    """Completes the path of a folder, one level at a time."""
    parent = Path(typed[: typed.rfind("/") + 1] or ".")
    return [f"{path}/" for path in parent.glob("*") if path.is_dir()] if parent.is_dir() else []
