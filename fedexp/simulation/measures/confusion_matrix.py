"""confusion_matrix.csv: what the final global model answers on the test data.

It is there where `evaluation.metrics` asks for it. A line a true class, a column an answer; the cells count examples.
Legend: K classes.
"""

from collections.abc import Iterator
from typing import Any

import torch

from fedexp.core.values import State, Weights
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.world import World

NAME, METRIC, FIRST = "confusion_matrix.csv", "confusion_matrix", "true class"


def rows(exp: Experiment, world: World, state: State) -> list[dict[str, Any]]:
    """A row for each class; none unless they are asked for."""
    if METRIC not in exp.metrics or not exp.evaluation.test:
        return []
    counts = count_answers(world, state.models[0]).tolist()
    names = world.class_names
    return [{FIRST: name, **dict(zip(names, row, strict=True))} for name, row in zip(names, counts, strict=True)]


def count_answers(world: World, weights: Weights) -> torch.Tensor:
    """How many test examples of each class (row) the model says to be of each class (column), int64 `[K, K]` (CPU)."""
    classes = len(world.class_names)
    pairs = torch.cat([targets * classes + likeliest for targets, likeliest in answers(world, weights)])
    return pairs.cpu().bincount(minlength=classes * classes).view(classes, classes)


def answers(world: World, weights: Weights) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yields the test data in chunks: the targets `[B, ...]`, and the classes or tokens that the model answers."""
    scorer, data = world.scorer, world.test
    for part in scorer.parts(data):
        yield data.y[part], scorer.logits(weights, data.inputs(part)).argmax(dim=-1)
