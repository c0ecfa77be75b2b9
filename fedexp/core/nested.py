"""Nested mappings by dotted keys, `{"a": {"b": 1}}` is `a.b = 1`, and as JSON."""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


def walk(node: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yields every dotted key with its value; a mapping comes before what is in it."""
    for name, value in node.items():
        yield f"{prefix}{name}", value
        if isinstance(value, Mapping):
            yield from walk(value, f"{prefix}{name}.")


def lookup(node: Any, key: str) -> Any:
    """The value of a dotted key; None if there is none."""
    for name in key.split("."):
        node = node.get(name) if isinstance(node, Mapping) else None
    return node


def flatten_keys(node: Mapping[Any, Any]) -> dict[str, Any]:
    """The values that are no mappings, by their dotted keys."""
    return {key: value for key, value in walk(node) if not isinstance(value, Mapping)}


def json_text(node: Any) -> str:
    """A nested value as JSON; a number that is not finite does not exist there and becomes null."""
    return json.dumps(_json_value(node), indent=2, allow_nan=False) + "\n"


def _json_value(node: Any) -> Any:
    """The same as JSON can hold it: null for numbers that are not finite, Python's numbers for NumPy's."""
    if isinstance(node, Mapping):
        return {str(name): _json_value(value) for name, value in node.items()}
    if isinstance(node, list | tuple):
        return [_json_value(value) for value in node]
    if isinstance(node, Path):
        return str(node)
    if hasattr(node, "item"):
        node = node.item()
    return None if isinstance(node, float) and not math.isfinite(node) else node
