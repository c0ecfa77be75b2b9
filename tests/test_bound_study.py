"""The resilience bound of Krum as the study draws it, by hand and beside its file."""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
from script_modules import imported

STUDY = Path(__file__).parents[1] / "scripts" / "studies" / "aggregation_thesis"


@pytest.fixture
def bound() -> Iterator[ModuleType]:
    """The study's script; what it adds to the path of modules is taken away again."""
    before = list(sys.path)
    with imported(STUDY, "bound") as (found,):
        yield found
    sys.path[:] = before


def test_eta_by_hand(bound: ModuleType):
    """n = 7, f = 2: 2 * (5 + (2 * 3 + 4 * 4) / 1) = 54."""
    assert bound.eta(7, 2) == pytest.approx(54**0.5)
    assert bound.eta(8, 0) == pytest.approx(4)


def test_the_signal_by_hand(bound: ModuleType):
    """Updates (1, 0) and (3, 0): mean 2, variance 2."""
    assert bound.signal(torch.tensor([[1.0, 0.0], [3.0, 0.0]])) == pytest.approx(2 / 2**0.5)


def test_the_file_holds_that_bound(bound: ModuleType):
    with (STUDY / "bound.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(bound.SEEDS) * len(bound.PARTS)
    assert {line["eta(20, 4)"] for line in lines} == {f"{bound.eta(bound.CLIENTS, bound.MALICIOUS):.4f}"}
    assert all(0 < float(line["signal"]) < float(line["eta(20, 4)"]) for line in lines)
