"""Checks of single values that parts return: memories, rows, uploads and models.

Every check gives in words what is wrong, or None. Legend: C participants, D entries of a model.
"""

from dataclasses import is_dataclass
from typing import Any

import torch

from fedexp.core.fields import misfit, plain, resembles, told
from fedexp.core.values import SERVER, Uploads, Weights

REMEMBERED = (str, int, float, bool, type(None))


def several(came: Any, *kinds: type) -> str | None:
    """Checks for a tuple of values of these kinds, the last of which is a memory."""
    names = [kind.__name__ for kind in kinds]
    if not isinstance(came, tuple) or len(came) != len(kinds):
        got = f"{len(came)} values" if isinstance(came, tuple) else told(came)
        return f"({', '.join(names)}), got {got}"
    for value, kind, name in zip(came, kinds, names, strict=True):
        if not isinstance(value, kind) and not (kind is float and type(value) is int):
            return f"({', '.join(names)}), but the {name} is {told(value)}"
        if is_dataclass(value) and (fault := misfit(value)):
            return f"{'an' if fault[0] in 'AEIOU' else 'a'} {fault}"
    return memory(came[-1])


def memory(came: Any, *_: Any) -> str | None:
    """Checks that a memory can be saved with the state and loaded again."""
    if not isinstance(came, dict):
        return f"its memory, a dict, got {told(came)}"
    found = strange(came)
    return found and f"a memory of tensors, numbers and texts, got {found}; NumPy's go through torch.from_numpy or int"


def strange(value: Any, where: str = "memory") -> str | None:
    """Describes the first nested value that cannot be saved with the state; None if all can."""
    if isinstance(value, dict):
        if odd := [key for key in value if type(key) not in (str, int)]:
            return f"{told(odd[0])} as a key of {where}"
        return next((found for key, child in value.items() if (found := strange(child, f"{where}[{key!r}]"))), None)
    if isinstance(value, list | tuple):
        return next((found for child in value if (found := strange(child, where))), None)
    known = plain(value) if isinstance(value, torch.Tensor) else type(value) in REMEMBERED
    return None if known else f"{told(value)} as {where}"


def rows(came: Any, shape: tuple[int, ...], like: torch.Tensor, what: str) -> str | None:
    """Checks for a tensor of this shape, with the type and device of `like` (any shape)."""
    return None if resembles(came, like, shape) else f"{what} as a tensor {like.dtype} {list(shape)}, got {told(came)}"


def uploads(came: Any, given: Uploads, *rest: Any, kinds: tuple[type, ...] = (Uploads, dict)) -> str | None:
    """Checks uploads: one value a row in every column, and rows as long as before."""
    if fault := several(came, *kinds):
        return fault
    new, width = came[0], given.delta.shape[1]
    if fault := rows(new.delta, (len(new.owner), width), given.delta, "Uploads whose delta [C, D] is"):
        return fault
    for name in ("model", "examples", "importance", "loss_before", "loss_after"):
        if len(getattr(new, name)) != len(new.owner):
            return f"Uploads with as many {name} as owners, got {len(getattr(new, name))} for {len(new.owner)}"
    return columns(new, given, rest[-1].clients)


def columns(new: Uploads, given: Uploads, clients: int) -> str | None:
    """Checks the columns of uploads: integers where clients, models or examples are counted, and in range."""
    for name in ("owner", "model", "examples", "importance", "loss_before", "loss_after"):
        column, whole = getattr(new, name), name in ("owner", "model", "examples")
        if column.ndim != 1 or (whole and column.dtype.kind not in "iu"):
            return f"Uploads whose {name} is an array of {'whole ' * whole}numbers [C], got {told(column)}"
    last = {"owner": clients - 1, "model": given.model.max(initial=0)}
    for name, high in last.items():
        column, low = getattr(new, name), SERVER if name == "owner" else 0
        if len(odd := column[(column < low) | (column > high)]):
            return f"Uploads whose {name} is from {low} to {high}, got {odd[0]}"
    if new.exact is not None and new.exact.shape != (len(new.owner), 2):
        return f"Uploads whose exact is None or an array [C, 2], got {told(new.exact)}"
    return None


def of_layout(came: Weights, given: Weights) -> str | None:
    """Checks that weights fit their layout, and that it differs from the one before in widths only."""
    names = (came.layout.names, came.layout.trainable)
    if names != (given.layout.names, given.layout.trainable):
        return "Weights whose layout has the names and the trainable entries of those it was given"
    return rows(came.flat, (came.layout.size,), given.flat, "Weights whose flat [D] is")


def several_models(came: tuple[Any, ...], given: tuple[Weights, ...]) -> str | None:
    """Checks for at least one model, each with the layout of those before."""
    if not came:
        return "at least one model, got none"
    for one in came:
        if not isinstance(one, Weights):
            return f"models that are Weights, got {told(one)}"
        if fault := misfit(one) or of_layout(one, given[0]):
            return fault
    return None
