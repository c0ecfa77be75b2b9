"""Bounds the cost of resolving a config: a few lines of `${a}${a}` may expand to more than a machine can hold."""

import re
from collections.abc import Mapping
from typing import Any

_NAMES = re.compile(r"\.*[\w.\[\]-]+")
_MADE = re.compile(r"\$\{[\w.\[\]-]*\$\{")  # a name built from another value: its target is not known in advance
BEYOND = 10**9


def lookups(root: Any) -> int:
    """An upper bound of the values read to resolve all references; a circle, which cannot be resolved, counts once."""
    known: dict[int, int] = {}

    def cost(node: Any, inside: tuple[str, ...]) -> int:
        if isinstance(node, Mapping):
            children = [(child, (*inside, str(name))) for name, child in node.items()]
        elif isinstance(node, list):
            children = [(child, (*inside, str(number))) for number, child in enumerate(node)]
        elif isinstance(node, str) and _MADE.search(node):
            return BEYOND
        elif isinstance(node, str) and "${" in node:
            children = [_found(root, name, inside) for name in _NAMES.findall(node)]
        else:
            return 1
        if id(node) not in known:
            known[id(node)] = 1
            known[id(node)] = 1 + sum(cost(child, place) for child, place in children)
        return known[id(node)]

    return cost(root, ())


def _found(root: Any, name: str, inside: tuple[str, ...]) -> tuple[Any, tuple[str, ...]]:
    """The value that a reference at `path` means, and its path. A leading dot: on the same level; two: one above."""
    dots = len(name) - len(name.lstrip("."))
    steps = tuple(step for step in re.split(r"[.\[\]]+", name[dots:]) if step)
    place = (*inside[: max(0, len(inside) - dots)], *steps) if dots else steps
    node = root
    for step in place:
        if isinstance(node, list) and step.isdecimal() and int(step) < len(node):
            node = node[int(step)]
        elif isinstance(node, Mapping) and step in node:
            node = node[step]
        else:
            return None, ()
    return node, place
