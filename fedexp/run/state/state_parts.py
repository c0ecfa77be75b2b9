"""Checks that a loaded state has all its entries, of the right types: the file may be another one, or was changed."""

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import torch

from fedexp.core.fields import describe_misfit, fits
from fedexp.core.values import Layout
from fedexp.training.engine.contract import EngineChoice

TEXTS = ("surroundings", "inputs")  # what a state says of where and from what it was made
EARLIER = "earlier_surroundings"  # those of rounds before the run was resumed elsewhere
_KINDS: dict[str, Any] = {
    "config": dict,
    "engine": dict[str, str],
    "surroundings": dict[str, str],
    EARLIER: tuple[dict[str, str], ...],
    "inputs": dict[str, str],
    "round": int,
    "updates": int,
    "sim_s": float,
    "host_s": float,
    "models": list | tuple,
    "memory": dict[str, dict],
}


def is_complete_state(content: Mapping[Any, Any]) -> bool:
    """Whether all entries are there and have the right types; of the roles' memories only why a run stopped."""
    content = {**{name: {} for name in TEXTS}, EARLIER: [], **content}  # older states have none
    return (
        all(name in content and fits(kind, content[name]) for name, kind in _KINDS.items())
        and all(isinstance(key, str) for name in (*TEXTS, "memory") for key in content[name])
        and all(0 <= content[name] < math.inf for name in ("round", "updates", "sim_s", "host_s"))
        and content["engine"].keys() == {field.name for field in fields(EngineChoice)}
        and fits(str | None, content["memory"].get("stop", {}).get("reason"))
        and len(content["models"]) > 0
        and all(map(_is_model, content["models"]))
    )


def _is_model(value: Any) -> bool:
    """Whether this is a model: a row of floats, and a layout of as many entries."""
    match value:
        case (torch.Tensor() as flat, {"names": names, "shapes": shapes, "trainable": trainable}):
            layout = Layout(names, shapes, trainable)
            return (
                describe_misfit(layout) is None
                and 0 <= trainable <= len(names) == len(shapes)
                and all(size >= 0 for shape in shapes for size in shape)
                and flat.is_floating_point()
                and flat.shape == (layout.size,)
            )
    return False
