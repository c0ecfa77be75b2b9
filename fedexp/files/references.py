"""Bounds the cost of resolving a config: a few lines of `${a}${a}` may expand to more than a machine can hold."""

import re
from collections.abc import Mapping
from typing import Any

_NAMES = re.compile(r"\.*[\w.\[\]-]+")
_COMPUTED_NAME = re.compile(
    r"\$\{[\w.\[\]-]*\$\{"
)  # a name built from another value: its target is not known in advance
UNBOUNDED = 10**9


def count_lookups(root: Any) -> int:
    """An upper bound of the values read to resolve all references; a circle, which cannot be resolved, counts once."""
    costs: dict[int, int] = {}

    def cost(node: Any, path: tuple[str, ...]) -> int:
        if isinstance(node, Mapping):
            children = [(child, (*path, str(name))) for name, child in node.items()]
        elif isinstance(node, list):
            children = [(child, (*path, str(number))) for number, child in enumerate(node)]
        elif isinstance(node, str) and _COMPUTED_NAME.search(node):
            return UNBOUNDED
        elif isinstance(node, str) and "${" in node:
            children = [_resolve(root, name, path) for name in _NAMES.findall(node)]
        else:
            return 1
        if id(node) not in costs:
            costs[id(node)] = 1
            costs[id(node)] = 1 + sum(cost(child, child_path) for child, child_path in children)
        return costs[id(node)]

    return cost(root, ())


def _resolve(root: Any, name: str, path: tuple[str, ...]) -> tuple[Any, tuple[str, ...]]:
    """The value that a reference at `path` means, and its path. A leading dot: on the same level; two: one above."""
    dots = len(name) - len(name.lstrip("."))
    steps = tuple(step for step in re.split(r"[.\[\]]+", name[dots:]) if step)
    target_path = (*path[: max(0, len(path) - dots)], *steps) if dots else steps
    node = root
    for step in target_path:
        if isinstance(node, list) and step.isdecimal() and int(step) < len(node):
            node = node[int(step)]
        elif isinstance(node, Mapping) and step in node:
            node = node[step]
        else:
            return None, ()
    return node, target_path
