"""Values as text: as an override of the command line, or for reading."""

import re
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from typing import Any

_PLAIN = re.compile(r"[\w./@:+-]+")
_ANOTHER_TYPE = re.compile(r"null|true|false|[+-]?(nan|inf|[\d_.]+(e[+-]?[\d_]+)?)", re.IGNORECASE)  # read as no text


def override_text(value: Any) -> str:
    """A value as the command line takes it; a text with special signs is quoted."""
    return _format(value, _quote)


def plain_text(value: Any) -> str:
    """A value as a config file has it, nothing quoted."""
    return _format(value, str)


def short_text(value: Any) -> str:
    """A value as text for tables and legends: numbers in at most six digits."""
    return _format(value, lambda scalar: f"{scalar:g}" if isinstance(scalar, float) else str(scalar))


def key_of(word: str) -> str:
    """The key or group that an override sets, adds or removes."""
    return word.partition("=")[0].lstrip("+~")


def _format(value: Any, format_scalar: Callable[[Any], str]) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{name}:{_format(entry, format_scalar)}" for name, entry in value.items()) + "}"
    if isinstance(value, list | tuple | range):
        return "[" + ",".join(_format(entry, format_scalar) for entry in value) + "]"
    return format_scalar(value)


def _quote(value: Any) -> str:
    text = fspath(value) if isinstance(value, PathLike) else str(value)
    is_text = isinstance(value, str | PathLike)
    if _PLAIN.fullmatch(text) and not (is_text and _ANOTHER_TYPE.fullmatch(text)):
        return text
    escaped = re.sub(r"(\\*)('|$)", lambda match: 2 * match[1] + ("\\'" if match[2] else ""), text)
    return f"'{escaped}'"
