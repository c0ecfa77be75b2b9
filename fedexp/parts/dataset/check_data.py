"""Checks a dataset against its facts: targets are of their kind, examples have the announced shape and number.

Legend: S examples, K classes.
"""

from pathlib import Path

import numpy as np
import torch

from fedexp.core.fields import describe_misfit, type_and_shape
from fedexp.core.part import describe_choice
from fedexp.files.table_names import fault_in_column_names
from fedexp.parts import IGNORED, ConfigError, Data, Dataset, Facts, Split
from fedexp.parts.dataset.contract import TARGET_NAMES

CLIENT_COLUMNS = ("client", "examples", "true class")  # of federation.csv, confusion_matrix.csv
CHUNK_SIZE = 2**20  # numbers at a time, since PyTorch copies what it looks at


def checked_facts(dataset: Dataset, directory: Path) -> Facts:
    """The facts of a dataset, checked. Raises ConfigError if they are not valid."""
    facts: object = dataset.facts(directory)
    if fault := fault_in_facts(facts):
        raise ConfigError(f"{describe_choice('dataset', dataset)}: facts must return {fault}")
    assert isinstance(facts, Facts)
    return facts


def fault_in_facts(facts: object) -> str | None:
    """What is wrong with the facts, in words; None if nothing is."""
    if not isinstance(facts, Facts):
        return f"Facts, got {type_and_shape(facts)}"
    if fault := describe_misfit(facts):
        return fault
    for name, number in (("classes", facts.classes), ("train_size", facts.train_size), ("subjects", facts.subjects)):
        if number is not None and number < 1:
            return f"Facts whose {name} is at least 1, got {number}"
    if not facts.shape or min(facts.shape) < 1:
        return f"Facts whose shape is of numbers of at least 1, got {tuple(facts.shape)}"
    if facts.vocabulary < 0:
        return f"Facts whose vocabulary is at least 1, or 0 for examples that are no text, got {facts.vocabulary}"
    return None


def refuse(dataset: Dataset, facts: Facts, data: object) -> None:
    """Raises ConfigError if the loaded data is not what `facts` announced, or cannot be trained on."""
    fault = fault_in_data(facts, data)
    if fault is not None:
        raise ConfigError(f"{describe_choice('dataset', dataset)}: {fault}")


def fault_in_data(facts: Facts, data: object) -> str | None:
    """What is wrong with the data, in words; None if nothing is."""
    if not isinstance(data, Data):
        return f"load must return Data, got {type(data).__name__}"
    if fault := describe_misfit(data):
        return f"load must return {fault}"
    if len(data.class_names) != facts.classes:
        return f"facts says {facts.classes} classes, but load names {len(data.class_names)}: {data.class_names[:12]}"
    if isinstance(data.train.x, torch.Tensor) and len(data.train.x) != facts.train_size:
        return f"facts says {facts.train_size} training examples, but load gives {len(data.train.x)}"
    subjects = data.train.subject
    if facts.subjects is not None and (subjects is None or int(subjects.unique().numel()) > facts.subjects):
        got = "none" if subjects is None else int(subjects.unique().numel())
        return f"facts says {facts.subjects} subjects, but load gives {got}"
    for name, split in (("train", data.train), ("test", data.test)):
        if fault := fault_in_examples(split, facts) or fault_in_targets(split, facts):
            return f"{name}.{fault}"
    return fault_in_names(data, facts) or fault_in_subjects(data) or fault_in_scales(data)


def fault_in_names(data: Data, facts: Facts) -> str | None:
    """What is wrong with the names of the classes, which are columns of tables. Tokens are no columns."""
    if facts.targets == "tokens":
        return None
    fault = fault_in_column_names(data.class_names, CLIENT_COLUMNS if facts.targets == "class" else ())
    return fault and f"class_names {fault}; rename the {TARGET_NAMES[facts.targets]} in the data"


def fault_in_subjects(data: Data) -> str | None:
    """What is wrong with the subjects and groups of the examples."""
    for name, split in (("train", data.train), ("test", data.test)):
        subjects = split.subject
        if subjects is not None and (subjects.dtype != torch.int64 or subjects.shape != split.y.shape[:1]):
            return f"{name}.subject must be a tensor of int64 [S], got {type_and_shape(subjects)}"
    groups = data.groups
    if groups is not None and (groups.dtype.kind not in "iu" or groups.shape != tuple(data.train.y.shape[:1])):
        return f"groups must be whole numbers, one a training example, got {groups.dtype} {list(groups.shape)}"
    return None


def fault_in_scales(data: Data) -> str | None:
    """What is wrong with the numbers for normalisation: `(x / scale - mean) / std`."""
    channels = data.train.x.shape[1]
    for name, numbers in (("scale", [data.scale]), ("mean", data.mean), ("std", data.std)):
        if len(numbers) not in (1, channels):
            return f"{name} must be one number, or one for each of {channels} channels, got {len(numbers)}"
        if not np.isfinite(numbers).all() or (name != "mean" and min(numbers) <= 0):
            return f"{name} must be finite{' and > 0' * (name != 'mean')}, got {tuple(numbers)}"
    return None


def fault_in_examples(split: Split, facts: Facts) -> str | None:
    """What is wrong with `x`."""
    x, kinds = split.x, (torch.int64,) if facts.vocabulary else (torch.uint8, torch.float32)
    if not isinstance(x, torch.Tensor) or x.dtype not in kinds:
        return f"x must be a tensor of {'int64' if facts.vocabulary else 'uint8 or float32'}, got {type_and_shape(x)}"
    if tuple(x.shape[1:]) != tuple(facts.shape):
        return f"x must hold examples of the shape {tuple(facts.shape)} that facts gives, got {tuple(x.shape[1:])}"
    if len(x) == 0:
        return "x must hold at least one example, got none"
    if facts.vocabulary and not 0 <= int(x.min()) <= int(x.max()) < facts.vocabulary:
        return f"x must hold tokens from 0 to {facts.vocabulary - 1}, got {int(x.min())} to {int(x.max())}"
    if x.dtype == torch.float32 and not all_finite(x):
        return "x must be finite, but holds NaN or infinite numbers"
    return None


def all_finite(x: torch.Tensor) -> bool:
    """Whether no number of `x [S, *shape]` is NaN or infinite.

    A sum is NaN or infinite if one of its numbers is, and is found faster; it can overflow, so then all are looked at.
    """
    pieces = x.split(max(1, CHUNK_SIZE // x[0].numel()))
    return all(bool(piece.sum().isfinite()) or bool(piece.isfinite().all()) for piece in pieces)


def fault_in_targets(split: Split, facts: Facts) -> str | None:
    """What is wrong with `y`."""
    y, is_integer = split.y, facts.targets in ("class", "tokens")
    shape = {"class": (), "tokens": facts.shape}.get(facts.targets, (facts.classes,))
    kind = "int64" if is_integer else "float32"
    if not isinstance(y, torch.Tensor) or y.dtype != getattr(torch, kind) or tuple(y.shape[1:]) != tuple(shape):
        wanted = "labels [S]" if facts.targets == "class" else f"{facts.targets} {['S', *shape]}".replace("'", "")
        return f"y must be a tensor of {kind} {wanted}, got {type_and_shape(y)}"
    if len(y) != len(split.x):
        noun = "label" if facts.targets == "class" else "target"
        return f"y must have a {noun} an example, got {len(y)} for {len(split.x)}"
    return (fault_in_classes if is_integer else fault_in_numbers)(y, facts)


def fault_in_classes(y: torch.Tensor, facts: Facts) -> str | None:
    """What is wrong with targets that are classes or tokens, int64 (any shape)."""
    labels = y[y != IGNORED] if facts.targets == "tokens" else y
    if labels.numel() and not 0 <= int(labels.min()) <= int(labels.max()) < facts.classes:
        return f"y must hold labels from 0 to {facts.classes - 1}, got {int(labels.min())} to {int(labels.max())}"
    return None


def fault_in_numbers(y: torch.Tensor, facts: Facts) -> str | None:
    """What is wrong with targets that are labels or numbers, float32 `[S, K]`."""
    if not y.isfinite().all():
        return "y must be finite, but holds NaN or infinite numbers"
    if facts.targets == "labels" and not ((y == 0) | (y == 1)).all():
        return f"y must hold 0 or 1 for each label, got {float(y[(y != 0) & (y != 1)][0]):g}"
    return None
