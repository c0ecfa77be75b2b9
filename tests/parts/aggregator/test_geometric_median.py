"""The geometric median against Weiszfeld's plain iteration over all columns, and by hand."""

import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matrices import equal_shares, normal, whole, wild

from fedexp.maths.rows import squared_distances
from fedexp.parts.aggregator.geometric_median import GeometricMedian, objective_decrease, rotate_to_span, weiszfeld


def objective(rows: torch.Tensor, weight: torch.Tensor, point: torch.Tensor) -> float:
    return math.fsum(part * math.dist(row, point.tolist()) for part, row in zip(weight, rows.tolist(), strict=True))


def slow(rows: torch.Tensor, weight: torch.Tensor, eps: float, iterations: int = 100) -> torch.Tensor:
    rows = rows.double()
    point = weight @ rows
    for _ in range(iterations):
        force = weight / torch.linalg.vector_norm(rows - point, dim=1).clamp(min=eps)
        point = (force / force.sum()) @ rows
    return point


def shares(data: st.DataObject, rows: int) -> torch.Tensor:
    weight = torch.tensor(data.draw(st.lists(st.integers(1, 5), min_size=rows, max_size=rows))).double()
    return weight / weight.sum()


def found(rows: torch.Tensor, weight: torch.Tensor | None = None, **settings: Any) -> torch.Tensor:
    return GeometricMedian(**settings).reduce_and_report(rows, equal_shares(len(rows)) if weight is None else weight)[0]


@pytest.mark.law("aggregator=geometric_median", "the corners of a square have their centre")
def test_the_corners_of_a_square_have_their_centre():
    assert found(torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])).tolist() == [1, 1]


@pytest.mark.law(
    "aggregator=geometric_median",
    "of a triangle of small angles it is the point that sees every side at 120 degrees",
)
def test_the_point_of_fermat():
    # an isosceles triangle with its base from (-1, 0) to (1, 0): sides are seen at 120 degrees from (0, 1 / sqrt 3)
    row = found(torch.tensor([[-1.0, 0.0], [1.0, 0.0], [0.0, 5.0]]))
    torch.testing.assert_close(row, torch.tensor([0.0, 3**-0.5]))


@pytest.mark.law(
    "aggregator=geometric_median", "a client with more than half of the weight is obeyed, however far the others are"
)
@pytest.mark.parametrize("far", [1.0, 1e6, 1e30])
def test_more_than_half_of_the_weight_decides(far: float):
    rows = torch.tensor([[0.5, 0.25], [far, 0.0], [0.0, -far]])
    assert found(rows, torch.tensor([0.51, 0.25, 0.24]).double()).tolist() == [0.5, 0.25]


@pytest.mark.law("aggregator=geometric_median", "equal clients are one client with their weight, to the byte")
def test_equal_clients_are_one_client_with_their_weight():
    rows = normal(0, 2, 6)
    assert torch.equal(found(torch.cat([rows[:1], rows, rows[:1]])), rows[0])


@given(
    honest=st.integers(1, 6),
    others=st.integers(1, 9),
    part=st.floats(0.02, 0.45),
    far=st.sampled_from([1e3, 1e10, 1e30, 3e37]),
    seed=st.integers(0, 999),
)
def test_rows_with_less_than_half_of_the_weight_are_bounded(
    honest: int, others: int, part: float, far: float, seed: int
):
    rows = torch.cat([normal(seed, honest, 4), normal(seed + 1, others, 4) * far])
    weight = torch.rand(honest + others, generator=torch.Generator().manual_seed(seed)).double() + 0.01
    weight[:honest] *= (1 - part) / weight[:honest].sum()
    weight[honest:] *= part / weight[honest:].sum()
    bound = 2 * (1 - part) / (1 - 2 * part) * rows[:honest].norm(dim=1).max()
    assert found(rows, weight, eps=1e-8).norm() <= bound


def test_most_of_the_rows_do_not_move_it_where_they_have_less_than_half_of_the_weight():
    rows = torch.cat([normal(4, 3, 5), torch.full((6, 5), 1e30)])
    weight = torch.tensor([0.2, 0.2, 0.15] + [0.075] * 6).double()
    assert found(rows, weight).norm() <= 2 / (1 - 2 * 0.45) * rows[:3].norm(dim=1).max()


@pytest.mark.law("aggregator=geometric_median", "one client is obeyed, to the byte, and two equal ones have their mean")
def test_one_client_and_two_clients():
    rows = normal(1, 2, 6)
    assert torch.equal(found(rows[:1]), rows[0])
    torch.testing.assert_close(found(rows), rows.mean(dim=0))


@pytest.mark.law("aggregator=geometric_median", "of rows nearer than eps it is the mean")
def test_below_eps_it_is_the_mean():
    rows = normal(2, 5, 6) * 1e-9
    torch.testing.assert_close(found(rows), rows.mean(dim=0))
    assert not torch.allclose(found(rows, eps=1e-15) * 1e9, rows.mean(dim=0) * 1e9, rtol=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_equals_weiszfeld_over_all_columns(seed: int):
    rows, weight = normal(seed, 8, 300), torch.rand(8, generator=torch.Generator().manual_seed(seed)).double()
    weight /= weight.sum()
    rows[0] += 3
    torch.testing.assert_close(found(rows, weight), slow(rows, weight, 1e-6).float(), rtol=1e-5, atol=1e-6)


@given(st.data())
def test_no_worse_than_weiszfeld_over_all_columns(data: st.DataObject):
    rows = data.draw(whole() | wild(mixed=False))
    weight = shares(data, len(rows))
    eps = 1e-6 * float(rows.abs().max()) + 1e-45
    mine, theirs = (objective(rows, weight, each) for each in (found(rows, weight, eps=eps), slow(rows, weight, eps)))
    assert mine <= theirs * (1 + 1e-6) + 1e-7 * float(rows.abs().max())


@pytest.mark.law("aggregator=geometric_median", "no iteration increases the weighted sum of distances")
@given(st.data())
def test_the_objective_never_increases(data: st.DataObject):
    rows = data.draw(whole(least=3) | wild(least=3, mixed=False)).double()
    weight, z = shares(data, len(rows)), rotate_to_span(rows)
    eps = 1e-6 * float(rows.abs().max()) + 1e-45
    points = [weiszfeld(z, weight, weight, eps, count, 1e-20)[0] @ rows for count in range(1, 12)]
    trace = [objective(rows, weight, point) for point in [weight @ rows, *points]]
    for before, after in pairwise(trace):
        assert after <= before * (1 + 1e-9) + 1e-14 * float(rows.abs().max())


def test_the_decrease_keeps_its_digits_beside_huge_sums():
    rows = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1e30]]).double()
    fall = objective_decrease(
        rows, equal_shares(3), torch.tensor([0.0, 1.0]).double(), torch.tensor([0.0, 0.5]).double()
    )
    assert fall.item() == pytest.approx((0.5 + (2**0.5 - 1.25**0.5) - 0.5) / 3)


@given(wild())
def test_the_rotation_keeps_distances(rows: torch.Tensor):
    norm = rows.double().norm(dim=1)
    gap = (squared_distances(rows).sqrt() - squared_distances(rotate_to_span(rows)).sqrt()).abs()
    assert (gap <= 1e-14 * len(rows) * (norm[:, None] + norm)).all()


def test_it_stops_when_nothing_is_gained():
    _, columns = GeometricMedian().reduce_and_report(normal(3, 20, 1000), equal_shares(20))
    assert columns["iterations"] in range(2, 21)
    _, columns = GeometricMedian(iterations=1).reduce_and_report(normal(3, 20, 1000), equal_shares(20))
    assert columns["iterations"] == 1
