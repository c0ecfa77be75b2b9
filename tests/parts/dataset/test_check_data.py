from dataclasses import replace
from typing import Any, cast

import pytest
import torch

from fedexp.parts.dataset.check_data import fault_in_data, fault_in_facts
from fedexp.parts.dataset.contract import IGNORED, Data, Facts, Split

TEXT = Facts((3,), 4, 2, targets="tokens", vocabulary=5)
LABELS = Facts((3,), 2, 2, targets="labels")
NUMBERS = Facts((3,), 1, 2, targets="numbers")
NEXT = torch.tensor([[0, 3, IGNORED], [1, 1, 1]])


def data(facts: Facts, y: torch.Tensor, x: torch.Tensor | None = None) -> Data:
    tokens = torch.tensor([[0, 4, 1], [2, 3, 1]])
    x = x if x is not None else tokens if facts.vocabulary else tokens.float()
    return Data(Split(x, y), Split(x, y), tuple("abcd")[: facts.classes])


@pytest.mark.parametrize(
    ("facts", "y", "outputs"),
    [
        (TEXT, NEXT, (3, 4)),
        (LABELS, torch.tensor([[0.0, 1.0], [1.0, 1.0]]), (2,)),
        (NUMBERS, torch.tensor([[0.5], [-7.0]]), (1,)),
    ],
)
def test_targets_of_their_kind_are_believed(facts: Facts, y: torch.Tensor, outputs: tuple[int, ...]):
    assert facts.outputs == outputs
    assert fault_in_facts(facts) is None
    assert fault_in_data(facts, data(facts, y)) is None


@pytest.mark.parametrize(
    ("facts", "y", "told"),
    [
        (TEXT, NEXT[:, :2], "train.y must be a tensor of int64 tokens [S, 3], got torch.int64 [2, 2]"),
        (TEXT, NEXT + 1, "train.y must hold labels from 0 to 3, got -99 to 4"),
        (LABELS, torch.zeros(2, 2, dtype=torch.int64), "train.y must be a tensor of float32 labels [S, 2]"),
        (LABELS, torch.full((2, 2), 0.5), "train.y must hold 0 or 1 for each label, got 0.5"),
        (NUMBERS, torch.zeros(2), "train.y must be a tensor of float32 numbers [S, 1]"),
        (NUMBERS, torch.full((2, 1), torch.inf), "train.y must be finite"),
    ],
)
def test_other_targets_are_refused(facts: Facts, y: torch.Tensor, told: str):
    assert (fault := fault_in_data(facts, data(facts, y))) is not None
    assert fault.startswith(told)


def test_tokens_that_no_vocabulary_has_are_refused():
    assert (
        fault_in_data(TEXT, data(TEXT, NEXT, torch.full((2, 3), 5)))
        == "train.x must hold tokens from 0 to 4, got 5 to 5"
    )
    fault = fault_in_data(TEXT, data(TEXT, NEXT, torch.zeros(2, 3)))
    assert fault is not None
    assert fault.startswith("train.x must be a tensor of int64, got")


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        (Facts((3,), 4, 2, vocabulary=-1), "Facts whose vocabulary is at least 1"),
        (
            Facts((3,), 4, 2, targets=cast(Any, "clas")),
            "Facts whose targets is class or labels or numbers or tokens, got str clas",
        ),
    ],
)
def test_odd_facts_are_told(facts: Facts, told: str):
    assert (fault := fault_in_facts(facts)) is not None
    assert fault.startswith(told)


@pytest.mark.parametrize("facts", [LABELS, NUMBERS, TEXT])
def test_names_of_classes_are_columns_of_tables_and_those_of_tokens_are_not(facts: Facts):
    targets = {2: torch.zeros(2, 2), 1: torch.zeros(2, 1), 4: NEXT}[facts.classes]
    broken = replace(data(facts, targets), class_names=tuple("\nbcd")[: facts.classes])
    fault = fault_in_data(facts, broken)
    if facts.targets == "tokens":
        assert fault is None
    else:
        assert fault == (
            "class_names must have no line breaks or other control characters, got '\\n'; rename the "
            f"{facts.targets} in the data"
        )


@pytest.mark.parametrize("name", ["client", "examples", "true class"])
def test_a_class_may_not_be_called_as_a_column_of_its_tables(name: str):
    facts, classes = Facts((3,), 2, 2), torch.tensor([0, 1])
    named = replace(data(facts, classes, torch.zeros(2, 3)), class_names=("a", name))
    assert fault_in_data(facts, named) == (
        f"class_names must not be {name!r}, which is another column of the run's tables; rename the classes in the data"
    )
