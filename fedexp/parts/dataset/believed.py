"""What a dataset gives beside what it said before: labels that are classes, examples of the shape, as many as told.

Legend: S examples, K classes.
"""

import torch

from fedexp.core.errors import ConfigError
from fedexp.core.part import named
from fedexp.parts.dataset.contract import Data, Dataset, Facts, Split


def refuse(dataset: Dataset, facts: Facts, data: object) -> None:
    """Raises ConfigError where the loaded data is not what `facts` promised, or is nothing to train on."""
    fault = contradiction(facts, data)
    if fault is not None:
        raise ConfigError(f"{named('dataset', dataset)}: {fault}")


def contradiction(facts: Facts, data: object) -> str | None:
    """What is wrong with the data, in words; None where nothing is."""
    if not isinstance(data, Data):
        return f"load must return Data, got {type(data).__name__}"
    if len(data.class_names) != facts.classes:
        return f"facts tells {facts.classes} classes, but load names {len(data.class_names)}: {data.class_names[:12]}"
    if isinstance(data.train.x, torch.Tensor) and len(data.train.x) != facts.train_size:
        return f"facts tells {facts.train_size} training examples, but load gives {len(data.train.x)}"
    people = data.train.subject
    if facts.subjects is not None and (people is None or int(people.unique().numel()) > facts.subjects):
        got = "none" if people is None else int(people.unique().numel())
        return f"facts tells {facts.subjects} subjects, but load gives {got}"
    for name, split in (("train", data.train), ("test", data.test)):
        if fault := odd_examples(split, facts) or odd_labels(split, facts.classes):
            return f"{name}.{fault}"
    return None


def odd_examples(split: Split, facts: Facts) -> str | None:
    """What is wrong with `x`."""
    x = split.x
    if not isinstance(x, torch.Tensor) or x.dtype not in (torch.uint8, torch.float32):
        return f"x must be a tensor of uint8 or float32, got {kind(x)}"
    if tuple(x.shape[1:]) != tuple(facts.shape):
        return f"x must hold examples of the shape {tuple(facts.shape)} that facts tells, got {tuple(x.shape[1:])}"
    if len(x) == 0:
        return "x must hold at least one example, got none"
    if x.dtype == torch.float32 and not torch.isfinite(x.sum(dtype=torch.float64)):
        return "x must be finite, but holds NaN or infinite numbers"
    return None


def odd_labels(split: Split, classes: int) -> str | None:
    """What is wrong with `y`."""
    y = split.y
    if not isinstance(y, torch.Tensor) or y.dtype != torch.int64 or y.dim() != 1:
        return f"y must be a tensor of int64 labels [S], got {kind(y)}"
    if len(y) != len(split.x):
        return f"y must have a label an example, got {len(y)} for {len(split.x)}"
    if not 0 <= int(y.min()) <= int(y.max()) < classes:
        return f"y must hold labels from 0 to {classes - 1}, got {int(y.min())} to {int(y.max())}"
    return None


def kind(value: object) -> str:
    """A value's type in words, a tensor's with its shape."""
    return f"{value.dtype} {list(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__
