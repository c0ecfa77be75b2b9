"""Former names of classes and keys, by which folders of released versions are read: none yet.

Whoever reads a config from a folder renews it (`renewed`), so that it equals the one that is composed today. Version
0.1.0 is the first whose folders are read by later versions; a class that moves after it gets a line in `MOVED`, a key
that is added one in `ADDED`.
"""

from collections.abc import Mapping
from typing import Any

MOVED: dict[str, str] = {}  # today's `_target_` by a former one
ADDED: dict[str, dict[str, Any]] = {}  # by today's `_target_`: later keys, with the values before them


def today(target: str) -> str:
    """Today's name of a class; a name that has not moved, or is not ours, is returned as it is."""
    return MOVED.get(target, target)


def renewed(node: Any) -> Any:
    """A copy of a nested config with today's name in every `_target_`, and with the keys that were added later."""
    if isinstance(node, Mapping):
        entries = {name: today(child) if name == "_target_" else renewed(child) for name, child in node.items()}
        return {**ADDED.get(str(entries.get("_target_")), {}), **entries}
    return [renewed(child) for child in node] if isinstance(node, list) else node
