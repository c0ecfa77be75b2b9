"""A key that is typed twice with different values: Hydra takes the last one without a word."""

from collections.abc import Iterator, Sequence

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import OverrideParseException


def describe_repeated_keys(words: Sequence[str]) -> Iterator[str]:
    """A sentence for each key with several values; none of words that Hydra cannot read, which it refuses."""
    try:
        overrides = OverridesParser.create().parse_overrides(list(words))
    except OverrideParseException:
        return
    typed: dict[str, list[str]] = {}
    for override in overrides:
        typed.setdefault(override.get_key_element().lstrip("+~"), []).append(str(override.input_line))
    for key, lines in typed.items():
        if len(set(lines)) > 1:
            yield f"{key} is given {len(lines)} times: {lines[-1]}, the last one, counts"
