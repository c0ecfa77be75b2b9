"""The largest eigenvalue from distances, against the covariance itself and by hand."""

import numpy as np
import pytest
import torch
from matrices import normal

from fedexp.maths.covariance import centred_products, principal_squares
from fedexp.maths.rows import squared_distances


def test_by_hand():
    """Rows (-1, 0), (1, 0), (0, 0): mean 0, variance 2/3 along the first axis."""
    rows, share = torch.tensor([[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]), torch.full((3,), 1 / 3, dtype=torch.float64)
    largest, squares = principal_squares(squared_distances(rows), share)
    assert largest == pytest.approx(2 / 3)
    assert squares.tolist() == pytest.approx([1, 1, 0], abs=1e-12)
    assert principal_squares(torch.zeros(3, 3, dtype=torch.float64), share)[0] == 0


@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_the_covariance_itself(seed: int):
    rows = normal(seed, 7, 4).double()
    weight = torch.from_numpy(np.random.default_rng(seed).dirichlet(np.ones(7)))
    mean = weight @ rows
    values, vectors = torch.linalg.eigh((rows - mean).T @ torch.diag(weight) @ (rows - mean))
    square = torch.cdist(rows, rows).square()
    largest, squares = principal_squares(square, weight)
    assert largest == pytest.approx(float(values[-1]))
    torch.testing.assert_close(squares, ((rows - mean) @ vectors[:, -1]).square())
    torch.testing.assert_close(centred_products(square, weight), (rows - mean) @ (rows - mean).T)
