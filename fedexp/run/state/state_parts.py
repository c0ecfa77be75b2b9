"""Checks that a loaded state has all its entries, of the right types: the file may be another one, or was changed."""

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import torch

from fedexp.training.engine.contract import EngineChoice


def is_complete_state(content: Mapping[Any, Any]) -> bool:
    """Whether all entries are there and have the right types; the roles' memories are not checked."""
    return all(name in content and is_valid(content[name]) for name, is_valid in _CHECKS.items()) and _is_text_dict(
        content.get("surroundings", {})
    )


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_duration(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and value >= 0


def _is_text_dict(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for pair in value.items() for text in pair)


def _is_engine(value: Any) -> bool:
    return _is_text_dict(value) and set(value) == {field.name for field in fields(EngineChoice)}


def _is_memory(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(role, str) and isinstance(role_memory, dict) for role, role_memory in value.items()
    )


def _are_models(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0 and all(map(_is_model, value))


def _is_model(value: Any) -> bool:
    """Whether this is a model: a row of floats, and a layout of as many entries."""
    match value:
        case (torch.Tensor() as flat, {"names": list() as names, "shapes": list() as shapes, "trainable": trainable}):
            valid_shapes = all(isinstance(shape, list) and all(map(_is_count, shape)) for shape in shapes)
            if not (valid_shapes and _is_count(trainable) and trainable <= len(names) == len(shapes)):
                return False
            valid_row = flat.is_floating_point() and flat.shape == (sum(map(math.prod, shapes)),)
            return valid_row and all(isinstance(name, str) for name in names)
    return False


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "config": lambda value: isinstance(value, dict),
    "engine": _is_engine,
    "round": _is_count,
    "models": _are_models,
    "memory": _is_memory,
    "sim_s": _is_duration,
    "host_s": _is_duration,
    "updates": _is_count,
}
