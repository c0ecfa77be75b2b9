"""Layers that work in stacked training."""

import torch
from torch import nn

Dropout = nn.Dropout  # kept because parts of others import it; engines seed every layer that draws


class BatchNorm(nn.BatchNorm2d):
    """Batch normalisation whose statistics ignore padded examples.

    With `mask [B]` set (by the stacked engine) the batch statistics are those of the unmasked examples, and the new
    running statistics are left in `updated` instead of being written in place; a batch without examples does not change
    them. Without a mask this is PyTorch's layer, except for its integer counter, which a row cannot hold.
    """

    def __init__(self, channels: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__(channels, eps, momentum)
        self.step = momentum
        self.num_batches_tracked = None
        self.mask: torch.Tensor | None = None
        self.updated: tuple[torch.Tensor, torch.Tensor] | None = None

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Images `[B, C, H, W]`, normalised."""
        # One value a channel has no variance, and PyTorch refuses it.
        single_value = self.mask is None and input.numel() == self.num_features
        if not self.training or (self.mask is None and not single_value):
            return super().forward(input)
        mask = torch.ones(len(input), device=input.device) if self.mask is None else self.mask
        mean, var, count = self._statistics(input, mask)
        self.updated = self._updated_statistics(mean, var, count)
        if single_value:
            self._write(*self.updated)
        scale = self.weight * torch.rsqrt(var + self.eps)
        return (input - mean[:, None, None]) * scale[:, None, None] + self.bias[:, None, None]

    def _write(self, mean: torch.Tensor, var: torch.Tensor) -> None:
        assert self.running_mean is not None
        assert self.running_var is not None
        self.running_mean.copy_(mean)
        self.running_var.copy_(var)

    def _statistics(self, x: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        weight = mask.to(x.dtype)[:, None, None, None]
        count = weight.sum() * (x.shape[2] * x.shape[3])
        total = count.clamp(min=1)
        mean = (x * weight).sum(dim=(0, 2, 3)) / total
        var = ((x - mean[:, None, None]).square() * weight).sum(dim=(0, 2, 3)) / total
        return mean, var, count

    def _updated_statistics(
        self, mean: torch.Tensor, var: torch.Tensor, count: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        assert self.running_mean is not None
        assert self.running_var is not None
        step = self.step * (count > 0)
        unbiased = var * count / (count - 1).clamp(min=1)
        new_mean = self.running_mean + torch.where(count > 0, step * (mean - self.running_mean), 0.0)
        new_var = self.running_var + torch.where(count > 0, step * (unbiased - self.running_var), 0.0)
        return new_mean.detach(), new_var.detach()


class AddChannel(nn.Module):
    """Adds the channel dimension that a convolution expects: features `[B, F]` become `[B, 1, F]`."""

    def forward(self, x):
        return x.unsqueeze(1)


class Residual(nn.Module):
    """The sum of two branches, `body(x) + shortcut(x)`; without a shortcut `body(x) + x`.

    He, Zhang, Ren, Sun, "Deep residual learning for image recognition", CVPR 2016, arXiv:1512.03385. Networks that
    consist of such sums and of other known layers are trained as fast as chains of layers.
    """

    def __init__(self, body: nn.Module, shortcut: nn.Module | None = None) -> None:
        super().__init__()
        self.body = body
        self.shortcut = nn.Identity() if shortcut is None else shortcut

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The sum for `x [B, ...]`.

        Raises:
            ValueError: the branches give different shapes.
        """
        body, shortcut = self.body(x), self.shortcut(x)
        if body.shape != shortcut.shape:
            shapes = f"{[*body.shape[1:]]} from the body and {[*shortcut.shape[1:]]} from the shortcut"
            raise ValueError(f"both branches of a Residual must give the same shape, got {shapes} for an example")
        return body + shortcut


class LSTM(nn.LSTM):
    """PyTorch's LSTM; inside torch.func (stacked training, gradients of single examples) its steps are written out.

    There a GPU has no other way. On a GPU they are written out everywhere: PyTorch would copy entries that are views of
    a row at every call. On a CPU, PyTorch's own steps are three times as fast.
    """

    def __init__(self, inputs: int, hidden: int, layers: int) -> None:
        super().__init__(inputs, hidden, layers, batch_first=True)

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        """The last layer's hidden state after every step, `[B, L, H]`, of sequences `[B, L, E]`."""
        if not torch._C._are_functorch_transforms_active() and not input.is_cuda:
            return super().forward(input)[0]
        for number in range(self.num_layers):
            input = self._layer(number, input)
        return input

    def _layer(self, number: int, x: torch.Tensor) -> torch.Tensor:
        weight_ih, weight_hh, bias_ih, bias_hh = (
            getattr(self, f"{name}_l{number}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        projected = nn.functional.linear(x, weight_ih, bias_ih + bias_hh)  # of all steps at once
        hidden = cell = x.new_zeros(len(x), self.hidden_size)
        states = []
        for step in projected.unbind(dim=1):
            input_gate, forget_gate, candidate, output_gate = (step + hidden @ weight_hh.T).chunk(4, dim=-1)
            cell = forget_gate.sigmoid() * cell + input_gate.sigmoid() * candidate.tanh()
            hidden = output_gate.sigmoid() * cell.tanh()
            states.append(hidden)
        return torch.stack(states, dim=1)


class Mixing(nn.Module):
    """The last step of a mixture: adds up the components' parts of each probability, which are its features.

    A mixture of M components has the logarithms of their shares in a buffer `log_shares [M, 1]`.
    """

    shares = "log_shares"
    takes_features = True

    def forward(self, parts: torch.Tensor) -> torch.Tensor:
        """Log-probabilities `[B, ..., K]` of the `parts [B, ..., M, K]`: log pi_m plus those of each component."""
        return parts.logsumexp(dim=-2)


def feature_layer(network: nn.Module) -> nn.Module | None:
    """The layer that is given the features: the last with `takes_features = True`, else the last linear one, if any."""
    layers = list(network.modules())
    marked = [layer for layer in layers if getattr(layer, "takes_features", False)]
    takers = marked or [layer for layer in layers if isinstance(layer, nn.Linear)]
    return takers[-1] if takers else None
