"""Minimum-diameter averaging by hand, against loops, and too many sets."""

from itertools import combinations

import pytest
import torch
from composing import experiment
from hypothesis import given
from hypothesis import strategies as st
from matrices import close, equal_shares, whole

from fedexp.core.errors import ConfigError, RunError
from fedexp.parts.aggregator.mda import MDA
from fedexp.parts.aggregator.subset_mean import SubsetMean
from fedexp.simulation.setup import compatibility


def reduced(rule: SubsetMean, rows: torch.Tensor, f: int) -> torch.Tensor:
    return rule.reduce_and_report(rows, equal_shares(len(rows)), f)[0]


@pytest.mark.law("aggregator=mda", "f = 0 is the mean")
def test_by_hand():
    # diameters of four of five: without 10: 5, without 0: 9; then of three: 0 1 2 has 2, 1 2 5 has 4
    rows = torch.tensor([[0.0], [1.0], [2.0], [5.0], [10.0]])
    assert reduced(MDA(), rows, 1).tolist() == [2.0]
    assert reduced(MDA(), rows, 2).tolist() == [1.0]
    assert reduced(MDA(), rows, 0).tolist() == [pytest.approx(3.6)]


@pytest.mark.parametrize("distances", [2**20, 1])
def test_of_sets_of_one_diameter_the_first_counts(distances: int, monkeypatch: pytest.MonkeyPatch):
    """Whether they are looked at together, or one after another."""
    monkeypatch.setattr("fedexp.parts.aggregator.subset_mean.CHUNK", distances)
    assert reduced(MDA(), torch.tensor([[0.0], [1.0], [2.0]]), 1).tolist() == [0.5]


@pytest.mark.law("aggregator=mda", "the result is the mean of the n - f rows with the smallest diameter")
@given(st.data())
def test_equals_the_loops(data: st.DataObject):
    rows = data.draw(whole())
    f = data.draw(st.integers(0, (len(rows) - 1) // 2))
    square = (rows[:, None] - rows).square().sum(dim=2)
    sets = combinations(range(len(rows)), len(rows) - f)
    best = min(sets, key=lambda each: float(square[list(each)][:, list(each)].max()))
    expected = rows[list(best)].double().mean(dim=0).tolist()
    assert close(reduced(MDA(), rows, f), expected, rows)


@pytest.mark.parametrize("name", ["mda", "smea"])
def test_too_many_sets_are_refused_before_data_is_loaded(name):
    words = (f"aggregator={name}", "scenario.clients=30", "scenario.byzantine=10", "pictures=false")
    said = rf"^aggregator={name} would try 30,045,015 sets of 20 of 30 updates, which is too many; ask fewer"
    with pytest.raises(ConfigError, match=said):
        compatibility.refuse(experiment(*words, "scenario.participants=30"))
    with pytest.raises(ConfigError, match=said):
        compatibility.refuse(experiment(*words, "scenario.participants=30", "fleet=simulated"))
    for others in (
        ("pre_aggregation=bucketing", "pre_aggregation.size=2"),
        ("fleet=simulated", "fleet.dropout=0.1"),
    ):  # some may not answer
        compatibility.refuse(experiment(*words, "scenario.participants=30", *others))


def test_the_bound_that_a_round_allows_counts():
    with pytest.raises(ConfigError, match=r"would try 145,422,675 sets of 16 of 30"):
        MDA(byzantine=20).refuse_rows(30)  # 14 are clamped to
    MDA(byzantine=20, on_violation="skip").refuse_rows(30)
    MDA(byzantine=2).refuse_rows(30)
    MDA().refuse_rows(0)


def test_too_many_sets_are_refused():
    with pytest.raises(RunError, match=r"^aggregator=mda would try 30,045,015 sets of 20 of 30 updates, which is"):
        reduced(MDA(), torch.zeros(30, 1), 10)
    with pytest.raises(RunError, match=r"would try more than 10\^15 sets"):
        reduced(MDA(), torch.zeros(2000, 1), 900)
