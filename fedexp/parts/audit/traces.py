"""How much of each example lies in what a client sent.

Whoever receives an update and knows the client's other examples explains it by gradients: by the sum of those of the
known examples and by each canary's own. The coefficients of the least squares fit are the traces. Fitting all at once
takes out what canaries have in common with each other and with the rest, which hides them from plain inner products.
Legend: n canaries, P trainable entries.
"""

import torch

RIDGE = 0.01  # of the mean squared norm of what the known examples leave: nearly equal ones get no huge coefficients


def traces(gradients: torch.Tensor, known: torch.Tensor, movement: torch.Tensor) -> torch.Tensor:
    """The coefficients `[n]` of `gradients [n, P]` beside `known [P]` in `movement [P]`, float64.

    Example:
        >>> known, movement = torch.tensor([0.0, 0.0, 3.0]), torch.tensor([2.02, 0.0, 9.0])
        >>> traces(torch.eye(3)[:2], known, movement).round(decimals=4)
        tensor([2., 0.], dtype=torch.float64)
    """
    gradients, direction = gradients.double(), known.double() / known.double().norm().clamp(min=1e-30)
    rows = gradients - torch.outer(gradients @ direction, direction)
    gram = rows @ rows.T
    ridge = RIDGE * gram.diagonal().mean().clamp(min=1e-30)
    return torch.linalg.solve(gram + ridge * torch.eye(len(gram)).to(gram), rows @ movement.double())
