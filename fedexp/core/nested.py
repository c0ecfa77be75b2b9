"""Nested mappings by dotted keys: `{"a": {"b": 1}}` is `a.b = 1`."""

from collections.abc import Iterator, Mapping
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
