"""The largest eigenvalue of the covariance of a few long rows, from their squared distances.

With weights p that sum to one and mu = sum_i p_i x_i, the products <x_i - mu, x_j - mu> follow from the distances of
the rows, and the covariance sum_i p_i (x_i - mu)(x_i - mu)^T has the eigenvalues of the small matrix
sqrt(p_i p_j) <x_i - mu, x_j - mu>. So nothing of the size D x D is made, and no iteration has to converge.
"""

import torch


def centred_products(square: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    """<x_i - mu, x_j - mu> of rows at squared distances `square [..., C, C]`, mu their mean by `p [C]`; float64."""
    to_mean = square @ p
    spread = to_mean @ p
    return (to_mean.unsqueeze(-1) + to_mean.unsqueeze(-2) - square - spread[..., None, None]) / 2


def principal_squares(square: torch.Tensor, p: torch.Tensor) -> tuple[float, torch.Tensor]:
    """The largest eigenvalue of the covariance by `p [C]`, and <x_i - mu, v>^2 `[C]` with its eigenvector v."""
    products, root = centred_products(square, p), p.sqrt()
    values, vectors = torch.linalg.eigh(root[:, None] * products * root)
    largest = float(values[-1])
    if largest <= 0:  # all rows that count are the same
        return 0.0, torch.zeros_like(p)
    return largest, (products @ (root * vectors[:, -1])).square() / largest
