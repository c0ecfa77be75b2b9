"""Whether two networks are the same but for the values that lie in a row: then rows of both can train together."""

from collections.abc import Callable
from functools import partial
from itertools import zip_longest
from types import MethodType
from typing import Any

import numpy as np
import torch
from torch import nn

_IN_ROWS = ("_parameters", "_buffers")


def twins(a: nn.Module, b: nn.Module) -> bool:
    """Whether they have the same layers with the same settings; what cannot be compared counts as different."""
    return all(_same_layer(one, other) for one, other in zip_longest(a.named_modules(), b.named_modules()))


def _same_layer(one: tuple[str, nn.Module] | None, other: tuple[str, nn.Module] | None) -> bool:
    if one is None or other is None or one[0] != other[0] or type(one[1]) is not type(other[1]):
        return False
    mine, yours = vars(one[1]), vars(other[1])
    settings = mine.keys() - {*_IN_ROWS, "_modules"}
    return (
        mine.keys() == yours.keys()
        and all(_same_entries(mine[kind], yours[kind]) for kind in _IN_ROWS)
        and all(alike(mine[name], yours[name]) for name in settings)
    )


def _same_entries(mine: dict[str, Any], yours: dict[str, Any]) -> bool:
    """Whether entries have the same shapes; whole numbers lie in no row, so their values count."""
    if mine.keys() != yours.keys():
        return False
    for name, entry in mine.items():
        other = yours[name]
        if entry is None or other is None or not entry.is_floating_point():
            if not alike(entry, other):
                return False
        elif (entry.shape, entry.dtype, entry.device) != (other.shape, other.dtype, other.device):
            return False
    return True


def alike(a: Any, b: Any) -> bool:
    """Whether two settings are equal, tensors (any shape) and what holds them included."""
    if a is b or type(a) is not type(b):
        return a is b
    way = next((way for kind, way in _WAYS.items() if isinstance(a, kind)), _equal)
    return way(a, b)


def _equal(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except Exception:  # whatever a user's own class raises
        return False


_WAYS: dict[type | tuple[type, ...], Callable[[Any, Any], bool]] = {
    torch.Tensor: lambda a, b: a.dtype == b.dtype and a.device == b.device and torch.equal(a, b),
    np.ndarray: lambda a, b: a.dtype == b.dtype and np.array_equal(a, b),
    dict: lambda a, b: a.keys() == b.keys() and all(alike(value, b[name]) for name, value in a.items()),
    (list, tuple): lambda a, b: len(a) == len(b) and all(map(alike, a, b)),
    partial: lambda a, b: alike((a.func, a.args, a.keywords), (b.func, b.args, b.keywords)),
    MethodType: lambda a, b: a.__func__ is b.__func__,
}
