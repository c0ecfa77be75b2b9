"""FedYogi (Reddi et al. 2021, algorithm 2): as FedAdam, with v <- v - (1 - b2) d^2 sign(v - d^2)."""

import torch

from fedexp.parts.server_optimizer.adam import Adam


class Yogi(Adam):
    """Adaptive server steps whose second moment changes additively."""

    def second_moment(self, square: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        return square - (1 - self.beta2) * new * torch.sign(square - new)
