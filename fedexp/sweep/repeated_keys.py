"""A key that is typed twice with different values: Hydra takes the last one without a word."""

import sys
from collections.abc import Iterator, Sequence

from hydra.core.override_parser.overrides_parser import OverridesParser


def warn_of_repeated_keys(words: Sequence[str]) -> None:
    """Says on stderr which of several values of a key counts; the words must be those of a config that was composed."""
    sys.stderr.write("".join(f"fedexp: {note}\n" for note in describe_repeated_keys(words)))


def describe_repeated_keys(words: Sequence[str]) -> Iterator[str]:
    """A sentence for each key with several values."""
    typed: dict[str, list[str]] = {}
    for override in OverridesParser.create().parse_overrides(list(words)):
        typed.setdefault(override.get_key_element().lstrip("+~"), []).append(str(override.input_line))
    for key, lines in typed.items():
        if len(set(lines)) > 1:
            yield f"{key} is given {len(lines)} times: {lines[-1]}, the last one, counts"
