"""The mean of the deltas, by hand."""

import numpy as np
import pytest
import torch
from worlds import Tiny, uploads_like

from fedexp.core import part as spec
from fedexp.core.values import Uploads
from fedexp.parts.aggregator.fedavg import FedAvg, weighted_mean


def test_weighted_mean_by_hand():
    delta = torch.tensor([[1.0, 10.0], [4.0, -2.0]])
    assert weighted_mean(delta, torch.tensor([0.25, 0.75], dtype=torch.float64)).tolist() == [3.25, 1.0]


def test_weighted_mean_accumulates_in_double_precision():
    delta = torch.full((1001, 1), 1e-4)
    delta[0] = 1e4
    share = torch.full((1001,), 1 / 1001, dtype=torch.float64)
    assert weighted_mean(delta, share).item() == pytest.approx((1e4 + 0.1) / 1001, rel=1e-7)


@pytest.mark.law("aggregator=fedavg", "shares sum to 1, and a client without examples has none")
@pytest.mark.parametrize(("weighting", "expected"), [("num_samples", [0.25, 0.75, 0]), ("uniform", [0.5, 0.5, 0])])
def test_shares_of_clients(tiny: Tiny, weighting: str, expected: list[float]):
    rule = spec.build(tiny(f"aggregator.weighting={weighting}")).aggregator
    three = np.arange(3)
    uploads = Uploads(three, three, np.array([10, 30, 0]), np.ones(3), torch.zeros(3, 1), three * 1.0, three * 1.0)
    assert rule.shares(uploads).tolist() == expected
    nobody = uploads.where(np.array([False, False, True]))
    assert rule.shares(nobody).tolist() == [0]


@pytest.mark.law("aggregator=fedavg", "30 examples count three times as much as 10, and equally with weighting=uniform")
@pytest.mark.parametrize(("weighting", "expected"), [("num_samples", [4.0, -0.5]), ("uniform", [3.0, 0.0])])
def test_thirty_examples_count_three_times_ten(tiny: Tiny, weighting: str, expected: list[float]):
    rule = spec.build(tiny(f"aggregator.weighting={weighting}")).aggregator
    assert isinstance(rule, FedAvg)
    delta = torch.tensor([[1.0, 1.0], [5.0, -1.0]])
    assert rule.reduce(delta, rule.shares(uploads_like(delta, examples=np.array([10, 30])))).tolist() == expected
