"""What a run says of its metrics besides the numbers: that one is undefined, that an accuracy says nothing."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from fedexp.core.join_first import join_first
from fedexp.core.values import State
from fedexp.maths.curve_metrics import MULTI_VALUED, metric_name
from fedexp.parts.dataset.contract import IGNORED
from fedexp.simulation.measures.confusion_matrix import answers
from fedexp.simulation.world import World

if TYPE_CHECKING:
    import pandas as pd

ROUNDING = 1e-9  # of a share that went through a table
_LARGEST = {"class": "largest class", "token": "most frequent token"}
SHOWN = 5  # clients in a sentence


class UndefinedMetrics:
    """Tells once of each column of a metric that it has a round without a value."""

    def __init__(self, entries: Sequence[str]) -> None:
        """`entries` are those of `evaluation.metrics`."""
        numbers = [entry for entry in entries if entry not in MULTI_VALUED]
        self.untold = {f"{kind}_{metric_name(entry)}": entry for kind in ("test", "validation") for entry in numbers}

    def describe(self, row: Mapping[str, Any]) -> list[str]:
        """A sentence for each column that is undefined in this row for the first time."""
        undefined = [name for name in self.untold if (value := row.get(name)) is not None and value != value]
        entries = [self.untold.pop(name) for name in undefined]
        return [
            f"{name} is undefined in round {row['round']}, so its cell is empty: {_reason(entry, row, name)}; told once"
            for name, entry in zip(undefined, entries, strict=True)
        ]


def describe_undefined_clients(lines: Sequence[Mapping[str, Any]]) -> str | None:
    """A sentence where clients in these lines of client_scores.csv have no score; None where all have one."""
    empty = [line for line in lines if any(value != value for value in line.values())]
    if not empty:
        return None
    names = join_first([str(line.get("name", line["client"])) for line in empty], SHOWN)
    return (
        f"{empty[0]['metric']} is undefined at {len(empty):,} of {len(lines):,} clients ({names}): means and tenths "
        "over clients leave them out"
    )


def _reason(entry: str, row: Mapping[str, Any], name: str) -> str:
    """Why the column `name` of a metric has no value in this row."""
    if ":" in entry:
        return f"{entry} returned NaN"
    loss = row.get(f"{name.partition('_')[0]}_loss")
    if loss is not None and not math.isfinite(loss):
        return "the model's answers are no numbers, or too large for them"
    return "the data, or the answers, are all alike"


def describe_constant_answer(world: World, state: State, table: "pd.DataFrame") -> str | None:
    """A sentence where the final accuracy on the test data is no better than that of a single answer.

    None otherwise, where targets are neither classes nor tokens, and without an accuracy. A model that names one class
    only has the share of this class as its accuracy, so others are not asked.
    """
    accuracy = table["test_accuracy"].iloc[-1] if "test_accuracy" in table and len(table) else None
    targets, noun = world.test.y, "class" if world.test.y.dim() == 1 else "token"
    if accuracy is None or accuracy != accuracy or (noun == "token" and targets.is_floating_point()):
        return None
    counts = targets[targets != IGNORED].cpu().bincount(minlength=len(world.class_names)).double()
    shares = counts / counts.sum()
    largest = shares.argmax()
    usual = f"the share of the {_LARGEST[noun]} ({_name(world, largest)})"
    equal = (shares - accuracy).abs() < ROUNDING
    if equal[largest]:
        return f"accuracy {accuracy:.4g} is {usual}"
    one_model = not world.exp.scenario.trains_alone  # a mean over many models says nothing of the answers of one
    if one_model and equal.any() and len(distinct := _distinct_answers(world, state)) == 1:
        only = f"the share of the only {noun} that the model answers ({_name(world, distinct[0])})"
        return f"accuracy {accuracy:.4g} is {only}"
    return f"accuracy {accuracy:.4g} is below {shares[largest]:.4g}, {usual}" if accuracy < shares[largest] else None


def _distinct_answers(world: World, state: State) -> torch.Tensor:
    """The classes, or tokens, that the model answers on the test data, ascending."""
    parts = answers(world, state.models[0])
    return torch.cat([likeliest[targets != IGNORED].unique() for targets, likeliest in parts]).unique().cpu()


def _name(world: World, label: torch.Tensor) -> str:
    name = world.class_names[int(label)]
    return name if name.strip() else repr(name)
