"""Messages in the words of a script: arguments of functions where the command line has flags."""

import re
import shlex
from collections.abc import Callable, Sequence

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from fedexp.core.errors import ConfigError

_WORD = r"""((?:'[^']*'|"[^"]*"|[\w@%+=:,./~-])+)"""  # of a shell, as shlex.quote writes it
_PHRASES: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (rf"--config-dir (?!must\b){_WORD}", lambda match: f"config_dir={_arguments(match[1])}"),
    (r"--trust-modules ([\w.]+)", r"trust_modules=['\1']"),
    (r"--config-dir\b", "config_dir"),
    (r"--trust-modules\b", "trust_modules"),
    (r"--(round|client|quiet)\b", r"\1"),
    (r"--unequal (\w+)", r"unequal=['\1']"),
    (rf"--measures {_WORD}", lambda match: f"measures={match[1].split(',')}"),
    (r"--measures\b", "measures"),
    (
        r"fedexp compare (.+) --against (.+)$",
        lambda match: f"fedexp.compare({_arguments(match[1])}, against=[{_arguments(match[2])}])",
    ),
    (r"--against (\S+ \S+=\S+)$", lambda match: f"against=[{_arguments(match[1])}]"),
    (r"after --against\b", "in against"),
    (r"--against\b", "against"),
    (
        rf"holds a run; use fedexp resume {_WORD} or",
        lambda match: f"holds a run; use fedexp.resume({_arguments(match[1])}), fedexp.run with resume=True, or",
    ),
    (rf"(?<!by the command: )fedexp resume {_WORD}", lambda match: f"fedexp.resume({_arguments(match[1])})"),
    (r"fedexp resume$", "fedexp.resume"),
    (r"begin again: fedexp run (.+)$", lambda match: f"begin again: fedexp.run({_arguments(match[1])})"),
    ("all reasons are above and in", "all reasons are in"),
    (r"\badd -m to run each of them", "call fedexp.sweep to run each of them"),
    (r"\bwrite -m (\S+=\S+)", r'call fedexp.sweep("\1")'),
    (r"; write (each apart: )?((?:[\w./+]+=\S+ ?)+)$", lambda match: f"; write {_strings(match[2])}"),
    (
        r"^([\w.]+) must be (?!.*\blist\b).*, got \[.*\]$",
        lambda match: f"{match[0]}; for a run of each call fedexp.sweep({_keyword(match[1])})",
    ),
)


def in_python_words(message: str) -> str:
    """A message with the functions' arguments in place of flags that have the same name: `config_dir='conf'`."""
    for pattern, replacement in _PHRASES:
        message = re.sub(pattern, replacement, message)
    return message


def _arguments(words: str) -> str:
    """Words of a shell, in quotes where they need it, as arguments of a function."""
    return ", ".join(map(repr, shlex.split(words)))


def _strings(words: str) -> str:
    """Words of the command line as arguments of a function."""
    return ", ".join(f'"{word}"' for word in words.split())


def _keyword(key: str) -> str:
    """A keyword argument with several values."""
    return f'**{{"{key}": [...]}}' if "." in key else f"{key}=[...]"


def refuse_contradictions(words: Sequence[object], keyword_words: Sequence[str]) -> None:
    """Raises ConfigError where a word and a keyword argument, given as a word, set a key to different values."""
    by_key = {_key(override): override for override in _parse(words)}
    for override in _parse(keyword_words):
        word = by_key.get(_key(override))
        if word is not None and word.value() != override.value():
            raise ConfigError(
                f"{_key(override)} must have one value, got {word.input_line} as a word and {override.input_line} as "
                "a keyword argument; leave one out"
            )


def _parse(words: Sequence[object]) -> list[Override]:
    """The overrides that can be read; what cannot is refused where the config is composed."""
    overrides = []
    for word in words:
        try:
            overrides += OverridesParser.create().parse_overrides([word] if isinstance(word, str) else [])
        except HydraException:
            continue
    return overrides


def _key(override: Override) -> str:
    return override.get_key_element().lstrip("+~")
