"""How much of each canary's gradient is in a client's upload.

An attacker who receives the upload and knows the client's other examples fits it by gradients: the sum of those of the
known examples, and each canary's own. The coefficients of the least squares fit are the traces. Fitting all at once
removes what canaries have in common with each other and with the rest, which would blur plain inner products.
Legend: n canaries, P trainable entries.
"""

import torch

RIDGE = 0.01  # share of the projected gradients' mean squared norm: nearly equal ones get no huge coefficients


def gradient_coefficients(
    gradients: torch.Tensor, known_gradient: torch.Tensor, movement: torch.Tensor
) -> torch.Tensor:
    """Coefficients `[n]` of `gradients [n, P]`, float64, in a fit of `movement [P]` by them and `known_gradient [P]`.

    Example:
        >>> known, movement = torch.tensor([0.0, 0.0, 3.0]), torch.tensor([2.02, 0.0, 9.0])
        >>> gradient_coefficients(torch.eye(3)[:2], known, movement).round(decimals=4)
        tensor([2., 0.], dtype=torch.float64)
    """
    gradients, direction = gradients.double(), known_gradient.double() / known_gradient.double().norm().clamp(min=1e-30)
    rows = gradients - torch.outer(gradients @ direction, direction)
    gram = rows @ rows.T
    ridge = RIDGE * gram.diagonal().mean().clamp(min=1e-30)
    return torch.linalg.solve(gram + ridge * torch.eye(len(gram)).to(gram), rows @ movement.double())
