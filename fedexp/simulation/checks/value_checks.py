"""Checks of single values that parts return: memories, rows, uploads and models.

Every check gives in words what is wrong, or None. Legend: C participants, D entries of a model.
"""

from dataclasses import is_dataclass
from typing import Any

import torch

from fedexp.core.fields import describe_misfit, describe_value, is_real, resembles
from fedexp.core.values import SERVER, Uploads, Weights

SAVABLE = (str, int, float, bool, type(None))
KEYS = (str, int)


def check_values(answer: Any, *kinds: type) -> str | None:
    """Checks for a tuple of values of these kinds, the last of which is a memory."""
    names = [kind.__name__ for kind in kinds]
    if not isinstance(answer, tuple) or len(answer) != len(kinds):
        got = f"{len(answer)} values" if isinstance(answer, tuple) else describe_value(answer)
        return f"({', '.join(names)}), got {got}"
    for value, kind, name in zip(answer, kinds, names, strict=True):
        if not isinstance(value, kind) and not (kind is float and type(value) is int):
            return f"({', '.join(names)}), but the {name} is {describe_value(value)}"
        if is_dataclass(value) and (fault := describe_misfit(value)):
            return f"{'an' if fault[0] in 'AEIOU' else 'a'} {fault}"
    return check_memory(answer[-1])


def check_memory(answer: Any, *_: Any) -> str | None:
    """Checks that a memory can be saved with the state and loaded again."""
    if not isinstance(answer, dict):
        return f"its memory, a dict, got {describe_value(answer)}"
    problem = find_unsavable(answer)
    return (
        problem and f"a memory of tensors, numbers and texts, got {problem}; NumPy's go through torch.from_numpy or int"
    )


def find_unsavable(value: Any, path: str = "memory") -> str | None:
    """Describes the first nested value that cannot be saved with the state; None if all can."""
    if is_savable(value):
        return None
    if isinstance(value, dict):
        if odd := [key for key in value if type(key) not in KEYS]:
            return f"{describe_value(odd[0])} as a key of {path}"
        return next(find_unsavable(child, f"{path}[{key!r}]") for key, child in value.items() if not is_savable(child))
    if isinstance(value, list | tuple):
        return next(find_unsavable(child, path) for child in value if not is_savable(child))
    return f"{describe_value(value)} as {path}"


def is_savable(value: Any) -> bool:
    """Whether a value, with all that it holds, can be saved with the state."""
    if isinstance(value, dict):
        return all(type(key) in KEYS for key in value) and all(map(is_savable, value.values()))
    if isinstance(value, list | tuple):
        return all(map(is_savable, value))
    return is_real(value) if isinstance(value, torch.Tensor) else type(value) in SAVABLE


def check_rows(answer: Any, shape: tuple[int, ...], like: torch.Tensor, name: str) -> str | None:
    """Checks for a tensor of this shape, with the type and device of `like` (any shape)."""
    return (
        None
        if resembles(answer, like, shape)
        else f"{name} as a tensor {like.dtype} {list(shape)}, got {describe_value(answer)}"
    )


def check_uploads(answer: Any, before: Uploads, *args: Any, kinds: tuple[type, ...] = (Uploads, dict)) -> str | None:
    """Checks uploads: one value a row in every column, and rows as long as before."""
    if fault := check_values(answer, *kinds):
        return fault
    new, width = answer[0], before.delta.shape[1]
    if fault := check_rows(new.delta, (len(new.owner), width), before.delta, "Uploads whose delta [C, D] is"):
        return fault
    for name in ("model", "examples", "importance", "loss_before", "loss_after"):
        if len(getattr(new, name)) != len(new.owner):
            return f"Uploads with as many {name} as owners, got {len(getattr(new, name))} for {len(new.owner)}"
    return check_columns(new, before, args[-1].clients)


def check_columns(new: Uploads, before: Uploads, clients: int) -> str | None:
    """Checks the columns of uploads: integers where clients, models or examples are counted, and in range."""
    for name in ("owner", "model", "examples", "importance", "loss_before", "loss_after"):
        column, is_integral = getattr(new, name), name in ("owner", "model", "examples")
        if column.ndim != 1 or (is_integral and column.dtype.kind not in "iu"):
            return (
                f"Uploads whose {name} is an array of {'whole ' * is_integral}numbers [C], got {describe_value(column)}"
            )
    last = {"owner": clients - 1, "model": before.model.max(initial=0)}
    for name, high in last.items():
        column, low = getattr(new, name), SERVER if name == "owner" else 0
        if len(odd := column[(column < low) | (column > high)]):
            return f"Uploads whose {name} is from {low} to {high}, got {odd[0]}"
    if new.exact is not None and new.exact.shape != (len(new.owner), 2):
        return f"Uploads whose exact is None or an array [C, 2], got {describe_value(new.exact)}"
    return None


def check_layout(weights: Weights, before: Weights) -> str | None:
    """Checks that weights fit their layout, and that it differs from the one before in widths only."""
    names = (weights.layout.names, weights.layout.trainable)
    if names != (before.layout.names, before.layout.trainable):
        return "Weights whose layout has the names and the trainable entries of those it was given"
    return check_rows(weights.flat, (weights.layout.size,), before.flat, "Weights whose flat [D] is")


def check_models(models: tuple[Any, ...], before: tuple[Weights, ...]) -> str | None:
    """Checks for at least one model, each with the layout of those before."""
    if not models:
        return "at least one model, got none"
    for weights in models:
        if not isinstance(weights, Weights):
            return f"models that are Weights, got {describe_value(weights)}"
        if weights.layout is not before[0].layout and (fault := describe_misfit(weights)):  # a layout has many names
            return fault
        if fault := check_layout(weights, before[0]):
            return fault
    return None
