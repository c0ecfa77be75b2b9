"""Copies of parts with other values."""

import copy
from typing import Any, TypeVar

from fedexp.core.part import Part

P = TypeVar("P", bound=Part)


def replace_unchecked(part: P, **values: Any) -> P:
    """A copy of a part with new values of some fields, which are not checked: a rate may be a tensor."""
    result = copy.copy(part)
    for name, value in values.items():
        object.__setattr__(result, name, value)
    return result
