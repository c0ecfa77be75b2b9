"""How much of each example lies in what a client sent.

Whoever receives an update and knows the client's other examples explains it by gradients: by the sum of those of the
known examples and by each canary's own. The coefficients of the least squares fit are the traces. Fitting all at once
takes out what canaries have in common with each other and with the rest, which hides them from plain inner products.
Legend: n canaries, P trainable entries.
"""

import torch

RIDGE = 0.01  # of the gradients' mean squared norm: what two nearly equal gradients may not exploit


def traces(gradients: torch.Tensor, known: torch.Tensor, movement: torch.Tensor) -> torch.Tensor:
    """The coefficients `[n]` of `gradients [n, P]` beside `known [P]` in `movement [P]`, float64.

    Example:
        >>> known, movement = torch.tensor([0.0, 0.0, 3.0]), torch.tensor([2.02, 0.0, 9.0])
        >>> traces(torch.eye(3)[:2], known, movement)
        tensor([2., 0.], dtype=torch.float64)
    """
    gradients, known, movement = gradients.double(), known.double(), movement.double()
    size = gradients.square().sum(dim=1).mean().sqrt().clamp(min=1e-30)
    length = known.norm().clamp(min=1e-30)
    rows = torch.cat([gradients / size, known[None] / length])
    gram = rows @ rows.T
    fit = torch.linalg.solve(gram + RIDGE * torch.eye(len(gram), dtype=gram.dtype, device=gram.device), rows @ movement)
    return fit[:-1] / size
