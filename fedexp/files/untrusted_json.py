"""Reads the JSON files of run folders as plain values; anybody may have written them."""

import json
from pathlib import Path
from typing import Any

from fedexp.core.errors import ConfigError
from fedexp.files.atomic import display_path
from fedexp.files.untrusted import read_regular

MAX_BYTES, MAX_DEPTH, MAX_DIGITS = 8_000_000, 40, 20  # bytes; levels; of a whole number


def read_json(path: Path) -> dict[str, Any] | None:
    """The mapping of a file; None if there is no file. A number may be `Infinity`, but not `NaN`.

    Raises:
        ConfigError: it is not a regular file, or holds anything but a plain mapping.
    """
    try:
        text = read_regular(path, MAX_BYTES).decode()
        content = json.loads(
            text, parse_int=_parse_integer, parse_constant=_parse_constant, object_pairs_hook=_parse_mapping
        )
        depth = _depth(content)
        json.dumps(content, ensure_ascii=False).encode()  # fails on half a surrogate pair, which nobody could print
    except FileNotFoundError:
        return None
    except ConfigError:
        raise
    except RecursionError:
        raise ConfigError(_too_deep(path)) from None
    except ValueError as error:
        raise ConfigError(f"{display_path(path)} cannot be read as JSON: {error}; is it damaged?") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{display_path(path)} must hold a mapping, got {repr(content)[:60]}; is it damaged?")
    if depth > MAX_DEPTH:
        raise ConfigError(_too_deep(path))
    return content


def _too_deep(path: Path) -> str:
    return f"{display_path(path)} must be at most {MAX_DEPTH} levels deep; is it damaged?"


def _parse_mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"a key may stand once, got {next(name for name in names if names.count(name) > 1)!r} twice")
    return mapping


def _parse_constant(word: str) -> float:
    if word == "NaN":
        raise ValueError("NaN is not a JSON number")
    return float(word)


def _parse_integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a whole number must have at most {MAX_DIGITS} digits, got {len(digits):,}")
    return int(digits)


def _depth(node: Any) -> int:
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return 1 + max(map(_depth, children), default=0)
