"""Arithmetic of rows against plain loops in exact numbers."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from matrices import normal, wild

from fedexp.maths import rows as arithmetic
from fedexp.maths.rows import clip_rows, distances_to, mix_rows, sorted_columns, squared_distances, weighted_median


def exact_square(one: torch.Tensor, other: torch.Tensor) -> Fraction:
    pairs = zip(one.tolist(), other.tolist(), strict=True)
    return sum(((Fraction(a) - Fraction(b)) ** 2 for a, b in pairs), Fraction(0))


@pytest.fixture(params=[2, 1024], autouse=True)
def columns(request, monkeypatch):
    monkeypatch.setitem(arithmetic.COLUMNS, "cpu", request.param)


def test_distances_by_hand():
    rows = torch.tensor([[0.0, 0, 0], [3, 4, 0], [3, 4, 12]])
    assert squared_distances(rows).tolist() == [[0, 25, 169], [25, 0, 144], [169, 144, 0]]
    assert distances_to(rows).tolist() == [0, 5, 13]
    assert distances_to(rows, torch.tensor([3.0, 4, 0]).double()).tolist() == [5, 0, 12]


class TestAgainstFractions:
    @staticmethod
    @given(wild())
    def test_distances(rows: torch.Tensor):
        found = squared_distances(rows)
        for i, one in enumerate(rows):
            for j, other in enumerate(rows):
                assert math.isclose(found[i, j], exact_square(one, other), rel_tol=1e-14)

    @staticmethod
    @given(wild())
    def test_norms(rows: torch.Tensor):
        for found, row in zip(distances_to(rows), rows, strict=True):
            assert math.isclose(found**2, exact_square(row, row * 0), rel_tol=1e-14)


def test_close_rows_far_from_the_origin_keep_their_distance():
    row = normal(0, 1, 5000) * 1e4
    near = row.clone()
    near[0, 17] = torch.nextafter(row[0, 17], torch.tensor(torch.inf))
    gap = (near[0, 17].double() - row[0, 17].double()) ** 2
    assert squared_distances(torch.cat([row, near, row]))[0].tolist() == [0, pytest.approx(gap.item(), rel=1e-14), 0]


def test_the_order_of_rows_changes_no_bit():
    rows, order = normal(1, 7, 3000), [3, 1, 6, 0, 2, 5, 4]
    assert torch.equal(squared_distances(rows)[order][:, order], squared_distances(rows[order]))


def test_the_typical_distance_has_more_than_half_of_the_weight():
    distance = torch.tensor([7.0, 1.0, 9.0, 3.0]).double()
    assert weighted_median(distance, torch.ones(4)) == 7
    assert weighted_median(distance, torch.tensor([1.0, 3.0, 1.0, 0.5])) == 1
    assert weighted_median(distance[:1], torch.ones(1)) == 7


def test_clipping_by_hand():
    rows = torch.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    torch.testing.assert_close(clip_rows(rows, 1.0), torch.tensor([[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]]))
    assert torch.equal(clip_rows(rows, float("inf")), rows)


def test_nothing_of_a_row_that_is_no_number_passes_a_clip():
    assert clip_rows(torch.tensor([[float("nan"), 100.0]]), 1.0).isnan().all()


def test_mixed_is_a_product_in_double_precision():
    rows = normal(2, 6, 50) * 1e30
    mix = torch.from_numpy(np.random.default_rng(3).random((4, 6)))
    found = mix_rows(mix, rows)
    assert found.dtype == torch.float32
    assert torch.equal(found, (mix @ rows.double()).float())


def test_sorted_columns():
    assert sorted_columns(torch.tensor([[3.0, 1.0], [2.0, 9.0], [7.0, -1.0]])).tolist() == [[2, 3, 7], [-1, 1, 9]]


def test_a_slice_of_a_wider_matrix_is_as_good():
    wide = normal(4, 5, 60)
    part = wide[:, :50]
    assert torch.equal(squared_distances(part), squared_distances(part.clone()))
    assert torch.equal(sorted_columns(part), sorted_columns(part.clone()))
