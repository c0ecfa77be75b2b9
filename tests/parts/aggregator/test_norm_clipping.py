"""Norm clipping against a loop, and by hand."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matrices import close, equal_shares, wild

from fedexp.parts.aggregator.norm_clipping import NormClipping, clip_radius


def slow(rows: torch.Tensor, share: list[float], radius: float) -> list[float]:
    result = [0.0] * rows.shape[1]
    for row, part in zip(rows.double().tolist(), share, strict=True):
        norm = math.hypot(*row)
        for column, value in enumerate(row):
            result[column] += part * value * (min(1, radius / norm) if norm else 1)
    return result


def test_by_hand():
    rows = torch.tensor([[3.0, 4.0], [0.0, 1.0], [30.0, 40.0]])  # norms 5, 1, 50
    share = torch.tensor([0.25, 0.25, 0.5]).double()
    row, columns = NormClipping(radius=10).reduce_and_report(rows, share)
    assert row.tolist() == [0.75 + 3, 1 + 0.25 + 4]
    assert columns == {"radius": 10, "clipped": 1}
    row, columns = NormClipping().reduce_and_report(rows, share)
    assert row.tolist() == [0.75 + 1.5, 1 + 0.25 + 2]
    assert columns == {"radius": 5, "clipped": 1}


def test_the_radius_is_a_quantile():
    norm = torch.tensor([4.0, 1.0, 2.0, 3.0]).double()
    assert [clip_radius(norm, None, at) for at in (0.0, 0.5, 1.0)] == [1, 2.5, 4]
    assert clip_radius(norm, 7.0, 0.5) == 7


def test_rows_of_nothing_are_not_divided_by():
    row, columns = NormClipping().reduce_and_report(torch.tensor([[0.0], [0.0], [5.0]]), equal_shares(3))
    assert row.tolist() == [0]
    assert columns == {"radius": 0, "clipped": 1}


@pytest.mark.law("aggregator=norm_clipping", "the result is never longer than the radius")
@given(rows=wild(), radius=st.sampled_from([1e-30, 1e-3, 1.0, 1e30]))
def test_equals_the_loop(rows: torch.Tensor, radius: float):
    share = equal_shares(len(rows))
    found, _ = NormClipping(radius=radius).reduce_and_report(rows, share)
    assert close(found, slow(rows, share.tolist(), radius), rows.clamp(-radius, radius))
    assert found.double().norm() <= radius * (1 + 1e-6)


@pytest.mark.law("aggregator=norm_clipping", "a large radius is the mean")
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_a_large_radius_is_the_mean(rows: int):
    delta = torch.arange(rows * 3.0).view(rows, 3)
    found, _ = NormClipping(radius=1e6).reduce_and_report(delta, equal_shares(rows))
    torch.testing.assert_close(found, delta.mean(dim=0))


@pytest.mark.parametrize("clients", range(1, 12))
@pytest.mark.parametrize("quantile", [0.0, 0.3, 0.5, 0.6, 0.75, 1.0])
def test_so_many_long_rows_do_not_raise_the_radius(clients: int, quantile: float):
    most = max(0, clients - 1 - math.ceil(quantile * (clients - 1)))
    for long in range(most + 2):
        norm = torch.tensor([1.0] * (clients - long) + [1e3] * long)
        assert (clip_radius(norm, None, quantile) < 1.01) == (long <= most or long == 0), long
        if long == clients:
            return
