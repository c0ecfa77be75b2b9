"""Checks that the fields of a dataclass hold what their annotations say, for values that a user's part has made."""

import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import torch

_TYPE_NAMES = {
    np.ndarray: "an array of numbers",
    torch.Tensor: "a dense tensor of real numbers",
    int: "a whole number",
    float: "a number",
    str: "a text",
    type(None): "None",
}


def describe_misfit(value: Any) -> str | None:
    """Describes the first field, nested ones too, whose value does not fit its annotation; None if all fit."""
    for name, kind in _field_types(type(value)).items():
        field_value = getattr(value, name)
        if not fits(kind, field_value):
            return f"{type(value).__name__} whose {name} is {describe_type(kind)}, got {describe_value(field_value)}"
        if is_dataclass(field_value) and (inner := describe_misfit(field_value)):
            return inner
    return None


@cache
def _field_types(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind) if field.init}


def fits(kind: Any, value: Any) -> bool:
    """Whether a value is of an annotated kind. NaN is no number; NumPy's numbers are."""
    return _type_check(kind)(value)


@cache
def _type_check(kind: Any) -> Callable[[Any], bool]:
    """The check that `fits` makes for an annotation, built once."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        checks = [_type_check(member) for member in args]
        return lambda value: any(check(value) for check in checks)
    if origin is tuple:
        check_entry = _type_check(args[0])
        return lambda value: isinstance(value, tuple | list) and all(map(check_entry, value))
    if origin is Literal:
        return lambda value: isinstance(value, str) and value in args
    if origin is dict:
        check_value = _type_check(args[1])
        return lambda value: isinstance(value, dict) and all(map(check_value, value.values()))
    if kind in (int, float):
        numbers = (int, np.integer) if kind is int else (int, np.integer, float, np.floating)
        return lambda value: isinstance(value, numbers) and not isinstance(value, bool) and value == value
    if issubclass(kind, np.ndarray | torch.Tensor):
        return lambda value: isinstance(value, kind) and is_real(value)
    return lambda value: isinstance(value, kind)


def is_real(value: np.ndarray | torch.Tensor) -> bool:
    """Whether an array or tensor (any shape) holds real numbers; sparse tensors and those on `meta` do not."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biuf"
    return value.layout == torch.strided and not value.is_meta and not value.is_complex()


def describe_type(kind: Any) -> str:
    """An annotated kind in words."""
    if get_origin(kind) in (Union, types.UnionType):
        return " or ".join(describe_type(member) for member in get_args(kind))
    if get_origin(kind) is tuple:
        return f"a tuple, each {describe_type(get_args(kind)[0])}"
    if get_origin(kind) is Literal:
        return " or ".join(get_args(kind))
    if get_origin(kind) is dict:
        return f"a dict, each value {describe_type(get_args(kind)[1])}"
    return _TYPE_NAMES.get(kind, f"a {getattr(kind, '__name__', kind)}")


def resembles(value: object, like: torch.Tensor, shape: tuple[int, ...]) -> bool:
    """Whether `value` is a dense tensor of this `shape`, with the type and on the device of `like` (any shape)."""
    return (
        isinstance(value, torch.Tensor)
        and value.shape == shape
        and (value.dtype, value.device, value.layout) == (like.dtype, like.device, torch.strided)
    )


def type_and_shape(value: object) -> str:
    """A value's type in words, a tensor's with its shape."""
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    subclass = "" if type(value) in (torch.Tensor, torch.nn.Parameter) else f"{type(value).__name__} "
    return f"{subclass}{_tensor_type(value)}"


def _tensor_type(value: torch.Tensor) -> str:
    sparse = "" if value.layout == torch.strided else " (not dense)"
    device = "" if value.device.type == "cpu" else f" on {value.device}"
    shape = "nested" if value.is_nested else list(value.shape)
    return f"{value.dtype} {shape}{sparse}{device}"


def describe_value(value: Any) -> str:
    """Describes a value briefly: an array by its type and shape."""
    if isinstance(value, torch.Tensor):
        return f"{type(value).__name__} {_tensor_type(value)}"
    if isinstance(value, np.ndarray):
        return f"{type(value).__name__} {value.dtype} {list(value.shape)}"
    return f"{type(value).__name__} {str(value)[:80]}" if isinstance(value, int | float | str) else type(value).__name__
