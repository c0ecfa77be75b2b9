"""A field that holds something else than its annotation says is named, in a nested value too."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
import torch

from fedexp.core.fields import describe_misfit, describe_value, fits


@dataclass(frozen=True)
class Inner:
    names: tuple[str, ...] = ("a",)
    shapes: tuple[tuple[int, ...], ...] = ((2,),)


@dataclass(frozen=True)
class Outer:
    row: torch.Tensor
    inner: Inner
    seconds: float | None = None
    extra: dict[str, torch.Tensor] = field(default_factory=dict)


ODD: dict[str, Any] = {"shapes": ((2.5,),)}
RIGHT = Outer(torch.zeros(2), Inner(), 1.5, {"a": torch.zeros(1)})


@pytest.mark.parametrize("seconds", [None, 0, 1.5, np.float64(2), np.int64(3)])
def test_what_fits_is_taken(seconds: Any):
    assert describe_misfit(replace(RIGHT, seconds=seconds)) is None


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"row": [1.0]}, "Outer whose row is a dense tensor of real numbers, got list"),
        (
            {"row": torch.zeros(2).to_sparse()},
            "Outer whose row is a dense tensor of real numbers, got Tensor torch.float32 [2] (not dense)",
        ),
        ({"inner": None}, "Outer whose inner is a Inner, got NoneType"),
        (
            {"inner": replace(RIGHT.inner, **{**ODD, "shapes": (), "names": (3,)})},
            "Inner whose names is a tuple, each a text, got tuple",
        ),
        (
            {"inner": replace(RIGHT.inner, **ODD)},
            "Inner whose shapes is a tuple, each a tuple, each a whole number, got tuple",
        ),
        ({"seconds": float("nan")}, "Outer whose seconds is a number or None, got float nan"),
        (
            {"extra": {"a": torch.zeros(1), "b": [1.0]}},
            "Outer whose extra is a dict, each value a dense tensor of real numbers, got dict",
        ),
        ({"seconds": True}, "Outer whose seconds is a number or None, got bool True"),
        ({"seconds": "x" * 1000}, f"Outer whose seconds is a number or None, got str {'x' * 80}"),
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, Any], wanted: str):
    assert describe_misfit(replace(RIGHT, **changes)) == wanted


@pytest.mark.parametrize(
    "value", [np.array(["x"]), np.array([None]), np.zeros(2, complex), [1], torch.zeros(2)], ids=str
)
def test_an_array_holds_real_numbers(value: Any):
    assert not fits(np.ndarray, value)


@pytest.mark.parametrize("value", [torch.zeros(2, device="meta"), torch.zeros(2, dtype=torch.complex64), np.zeros(2)])
def test_a_tensor_holds_real_numbers_here(value: Any):
    assert not fits(torch.Tensor, value)


def test_values_are_told_in_few_words():
    assert describe_value(torch.zeros(2, 3)) == "Tensor torch.float32 [2, 3]"
    assert describe_value(object()) == "object"
