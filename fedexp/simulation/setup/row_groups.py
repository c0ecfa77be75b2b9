"""How many clients' rows a round holds at once: all, or a group where every part looks at one row at a time.

Legend: C participants, W entries of a message.
"""

from typing import Any

import numpy as np

from fedexp.config import roles
from fedexp.core.part import describe_choice
from fedexp.simulation.setup.experiment import Experiment

FLAG = "needs_all_rows"
METHODS = {  # by which a part sees the uploads of a round, besides the steps of roles that change them
    "local": ("finish", "receive"),
    "privacy": ("spend",),
    "fleet": ("deliver",),
    "selector": ("observe",),
    "audit": ("observe",),
    "clustering": ("assign", "regroup"),
    "aggregator": ("dispatch", "row_weights", "shares", "reduce", "combine"),
}
MOST_ROWS, GROUP_FLOATS = 128, 2**28  # of a group: a gigabyte of float32, but at least 8 rows


def group_size(width: int) -> int:
    """How many messages of `width` entries a group has. It decides the order of sums, so it asks no machine."""
    return int(np.clip(GROUP_FLOATS // width, 8, MOST_ROWS))


def split_owners(exp: Experiment, owner: np.ndarray, width: int) -> list[np.ndarray]:
    """The positions `[n]` of each group, given the owners `[C]` of the jobs: all as they are, or groups by owner."""
    size = group_size(width)
    if len(owner) <= size or readers_of_all_rows(exp):
        return [np.arange(len(owner))]
    return np.split(np.argsort(owner, kind="stable"), range(size, len(owner), size))


def readers_of_all_rows(exp: Experiment) -> list[str]:
    """What needs the rows of all participants at once, in words of the command line; empty if nothing does."""
    readers = [
        describe_choice(role.name, exp.part(role.name))
        for role in roles.all_roles()
        if needs_all_rows(exp.part(role.name), role)
    ]
    return [*readers, *["evaluation.local_models=true"] * exp.evaluation.tests_local_models]


def needs_all_rows(part: Any, role: roles.Role) -> bool:
    """Whether a part may compare the rows of several clients.

    The methods of a contract itself never do. A class that defines one of them may, unless it or a class that extends
    it says `needs_all_rows = False`.
    """
    return any(_may_compare(type(part), role.kind, method) for method in (*METHODS.get(role.name, ()), role.step))


def _may_compare(part_class: type, contract: type, method: str) -> bool:
    for kind in part_class.__mro__:
        if kind is contract:
            return False
        if FLAG in vars(kind):
            return vars(kind)[FLAG]
        if method in vars(kind):
            return True
    return False
