"""Checks that a loaded state has all its entries, of the right types: the file may be another one, or was changed."""

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import torch

from fedexp.training.engine import Choice


def complete(content: Mapping[Any, Any]) -> bool:
    """Whether all entries are there and have the right types; the roles' memories are not checked."""
    return all(name in content and sound(content[name]) for name, sound in _PARTS.items()) and _texts(
        content.get("surroundings", {})
    )


def _whole(value: Any) -> bool:
    return type(value) is int and value >= 0


def _seconds(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and value >= 0


def _texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for pair in value.items() for text in pair)


def _engine(value: Any) -> bool:
    return _texts(value) and set(value) == {field.name for field in fields(Choice)}


def _nested(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(role, str) and isinstance(held, dict) for role, held in value.items()
    )


def _models(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0 and all(map(_model, value))


def _model(value: Any) -> bool:
    """Whether this is a model: a row of floats, and a layout of as many entries."""
    match value:
        case (torch.Tensor() as flat, {"names": list() as names, "shapes": list() as shapes, "trainable": trainable}):
            whole = all(isinstance(shape, list) and all(map(_whole, shape)) for shape in shapes)
            if not (whole and _whole(trainable) and trainable <= len(names) == len(shapes)):
                return False
            row = flat.is_floating_point() and flat.shape == (sum(map(math.prod, shapes)),)
            return row and all(isinstance(name, str) for name in names)
    return False


_PARTS: dict[str, Callable[[Any], bool]] = {
    "config": lambda value: isinstance(value, dict),
    "engine": _engine,
    "round": _whole,
    "models": _models,
    "memory": _nested,
    "sim_s": _seconds,
    "host_s": _seconds,
    "updates": _whole,
}
