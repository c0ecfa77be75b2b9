"""Penalties that tie two models together, by their proximal maps (Fed+, Yu et al. 2020, arXiv 2009.06303).

prox(v) = argmin_u phi(u) rho + ||u - v||^2 / 2. The difference v - prox(v) is a fraction of v: rho / (1 + rho) for half
the squared norm, min(1, rho / ||v||) for the norm, and the same entry by entry for the sum of absolute values. It is
also rho times the gradient of the penalty's Moreau envelope.
"""

from typing import Literal

import torch

Penalty = Literal["l2_squared", "l2", "l1"]


def proximal_fraction(size: torch.Tensor, rho: float) -> torch.Tensor:
    """min(1, rho / size) for every entry of `size` (any shape); 1 where the size is 0."""
    return torch.where(size > rho, rho / size, 1.0)


def proximal_residual(v: torch.Tensor, penalty: Penalty, rho: float) -> torch.Tensor:
    """The difference v - prox(v) of the proximal map, `[..., P]` for rows `v [..., P]`; exactly 0 for rho = 0."""
    if penalty == "l2_squared":
        return v * (rho / (1 + rho))
    if penalty == "l1":
        return v.clamp(-rho, rho)
    norm = torch.linalg.vector_norm(v, dim=-1, keepdim=True, dtype=torch.float64)
    return v * proximal_fraction(norm, rho).to(v.dtype)
