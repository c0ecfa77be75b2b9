"""Former names of classes and keys, by which folders of released versions are read: none yet.

Whoever reads a config from a folder renews it (`migrate_config`), so that it equals the one that is composed today.
Version 0.1.0 is the first whose folders are read by later versions; a class that moves after it gets a line in
`RENAMED_TARGETS`, a key that is added one in `ADDED_KEYS`.
"""

from collections.abc import Mapping
from typing import Any

RENAMED_TARGETS: dict[str, str] = {}  # today's `_target_` by a former one
ADDED_KEYS: dict[str, dict[str, Any]] = {}  # by today's `_target_`: later keys, with the values before them


def current_target(target: Any) -> Any:
    """Today's name of a class; a name that has not moved, or is not ours, and what is no name, is returned as it is."""
    return RENAMED_TARGETS.get(target, target) if isinstance(target, str) else target


def migrate_config(node: Any) -> Any:
    """A copy of a nested config with today's name in every `_target_`, and with the keys that were added later."""
    if isinstance(node, Mapping):
        entries = {
            name: current_target(child) if name == "_target_" else migrate_config(child) for name, child in node.items()
        }
        return {**ADDED_KEYS.get(str(entries.get("_target_")), {}), **entries}
    return [migrate_config(child) for child in node] if isinstance(node, list) else node
