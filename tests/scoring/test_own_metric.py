"""A user's own metric: what it is given, what it may answer, how its mistakes are told."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from composing import experiment

from fedexp.core.errors import ConfigError
from fedexp.scoring.metrics import MetricSet
from fedexp.scoring.own_metric import OwnMetric

PROBABILITIES, TARGETS = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 0])
WHO = f"{__name__}:"


def f2(probabilities: np.ndarray, targets: np.ndarray) -> float:
    answers = probabilities.argmax(axis=1)
    found, wrong = ((answers == 1) & (targets == 1)).sum(), ((answers == 1) & (targets == 0)).sum()
    return 5 * found / (5 * found + 4 * ((answers == 0) & (targets == 1)).sum() + wrong)


def spoil(probabilities: np.ndarray, targets: np.ndarray) -> float:
    probabilities[:], targets[:] = 0.0, 7
    return 0.25


def one(probabilities: np.ndarray) -> float:
    return float(probabilities.mean())


def mistaken(probabilities: np.ndarray, targets: np.ndarray) -> float:
    return probabilities.nothing + targets  # pyright: ignore[reportAttributeAccessIssue]


def greedy(probabilities: np.ndarray, targets: np.ndarray) -> float:
    torch.set_num_threads(7)
    return float(probabilities.mean() + targets.mean())


answer: Any = None


def answers(probabilities: np.ndarray, targets: np.ndarray) -> Any:
    assert len(probabilities) == len(targets)
    return answer


def test_f2_by_hand():
    """1 found, 1 missed, 2 false alarms: 5 / (5 + 4 + 2)."""
    outputs = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    metric_set = MetricSet((f"{WHO}f2", "accuracy"), ("no", "yes"))
    targets = torch.tensor([1, 1, 0, 0])
    row = metric_set.sums(outputs, targets)
    sums, kept = row[: metric_set.width].numpy(), row[metric_set.width :].view(4, 2).numpy()
    assert kept[:, 1] == pytest.approx([1 / (1 + math.exp(-1)), 1 / (1 + math.e), *[1 / (1 + math.exp(-1))] * 2])
    assert metric_set.values(sums, kept, targets.numpy()) == {"f2": pytest.approx(5 / 11), "accuracy": 0.25}
    assert metric_set.main == "f2"


def test_it_gets_copies():
    assert OwnMetric(f"{WHO}spoil")(PROBABILITIES, TARGETS) == 0.25
    assert PROBABILITIES[0, 0] == 0.9
    assert TARGETS.tolist() == [0, 0]


@pytest.mark.parametrize("value", [0.5, 1, np.float32(0.5), np.array(0.5), torch.tensor(0.5), math.nan])
def test_any_number_is_an_answer(value: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(f"{__name__}.answer", value)
    assert OwnMetric(f"{WHO}answers")(PROBABILITIES, TARGETS) == pytest.approx(float(value), nan_ok=True)


@pytest.mark.parametrize("value", [None, "0.5", math.inf, np.array([0.5]), 1j])
def test_anything_else_is_refused_by_name(value: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(f"{__name__}.answer", value)
    said = rf"^evaluation\.metrics: {WHO}answers must return a finite number, or NaN where it is undefined, got "
    with pytest.raises(ConfigError, match=said):
        OwnMetric(f"{WHO}answers")(PROBABILITIES, TARGETS)


def test_its_errors_are_one_line():
    said = rf"^evaluation\.metrics={WHO}mistaken: AttributeError: .*nothing.* \(test_own_metric\.py, line \d+\)$"
    with pytest.raises(ConfigError, match=said):
        OwnMetric(f"{WHO}mistaken")(PROBABILITIES, TARGETS)


def test_it_leaves_the_process_as_it_is():
    before = torch.get_num_threads()
    with pytest.raises(ConfigError, match=r"must leave the process as it is, but calls torch\.set_num_threads"):
        OwnMetric(f"{WHO}greedy")(PROBABILITIES, TARGETS)
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (f"{WHO}one", r"must take \(probabilities, targets\), but too many positional arguments"),
        (f"{WHO}WHO", "must name functions, but .*:WHO is "),
        (f"{WHO}f3", "must name a function, but .*:f3 does not exist"),
        ("no_such_module:f2", "must name a function, but there is no module no_such_module here"),
    ],
)
def test_what_is_no_metric_is_refused_before_data_is_loaded(entry: str, said: str):
    with pytest.raises(ConfigError, match=said):
        OwnMetric(entry).function()


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("f1", "got f1; write macro_f1"),
        ("acuracy", "got acuracy; did you mean accuracy"),
        ("mine/metrics.py:f2", "got mine/metrics.py:f2; write mine.metrics:f2"),
        ("mine.metrics.f2", "got mine.metrics.f2; write mine.metrics:f2"),
        ("mine:auroc", "mine:auroc would make columns of the name auroc, which others have; rename it"),
        ("mine:loss", "mine:loss would make columns of the name loss"),
    ],
)
def test_names_that_are_none_are_answered(entry: str, said: str):
    with pytest.raises(ConfigError, match=rf"^evaluation\.metrics must be .*{said}"):
        experiment(f"evaluation.metrics=[accuracy,{entry}]")


def test_two_functions_of_one_name_are_refused():
    with pytest.raises(ConfigError, match=r"^evaluation\.metrics must be different ones"):
        experiment("evaluation.metrics=[mine:f2,yours:f2]")
