"""DP-SGD gradients for every engine: each example's gradient is clipped, and noise is added to their sum.

g_bar = g / max(1, ||g||_2 / C) over all parameters of the model together; (sum g_bar + N(0, sigma^2 C^2 I)) / B with
the nominal B, however many examples a batch holds (Abadi et al. 2016, algorithm 1). A gradient of norm zero stays zero.

Layers that `example_gradients` knows are clipped from their inputs and the gradients at their outputs, which costs
little more than a plain step; a network with any other layer, or with entries that are used in several places (tied
weights, layers that are called twice), is differentiated example by example by torch.func.
Legend: B examples, P trainable entries, D entries of a row, R rows.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn
from torch.func import grad, grad_and_value, vmap

from fedexp.core.values import Layout
from fedexp.training.binding import FunctionalNetwork
from fedexp.training.example_gradients import ExampleGradients, Formed, rule_for
from fedexp.training.losses import Losses
from fedexp.training.tape import Tape

Tensors = tuple[torch.Tensor, ...]


class Clipped:
    """The sum over a batch of per-example gradients, each clipped at norm `clip`."""

    def __init__(self, network: nn.Module, layout: Layout, clip: float, example: torch.Tensor, losses: Losses) -> None:
        """`example [1, ...]` is one input, used to measure the layers' output shapes."""
        self.network, self.layout, self.clip, self.losses = network, layout, clip, losses
        self.call, self.tape = FunctionalNetwork(network), Tape(network, example)
        self.rules = [rule_for(layer) for layer in self.tape.layers]
        self.known = self.tape.whole and all(rule is not None for rule in self.rules)

    @property
    def formed(self) -> int:
        """Floats of one example's materialised gradients, and of its convolution patches."""
        if not self.known:
            return self.layout.parameters
        entries = 0
        for layer, shape in zip(self.tape.layers, self.tape.shapes, strict=True):
            if not isinstance(layer, nn.Linear):
                own = sum(entry.numel() for entry in layer.parameters())
                entries += own + own * math.prod(shape[1:]) // shape[0]
        return entries

    def batch(self, row: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> Tensors:
        """(sum [P], mean loss) of `x [B, ...]` and `y [B]` for a network whose entries are views of `row [D]`.

        Both are 0 for an empty batch.
        """
        if len(y) == 0:
            return row.new_zeros(self.layout.parameters), row.new_zeros(())
        if not self.known:
            w, buffers = row.split([self.layout.parameters, self.layout.size - self.layout.parameters])
            total, (loss, _) = self.summed(w, buffers, x, y, torch.ones(len(y), dtype=torch.bool, device=y.device))
            return total, loss
        self.tape.clear()
        each = self.losses(self.network(x), y)
        errors = torch.autograd.grad(each.sum(), self.tape.outputs)
        with torch.no_grad():
            inputs = [entry.detach() for entry in self.tape.inputs]
            return self._sum(self._gradients(inputs, list(errors))), each.detach().mean()

    def summed(
        self, parameters: torch.Tensor, buffers: torch.Tensor, x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor
    ) -> tuple[torch.Tensor, Tensors]:
        """The clipped sum over the examples where `mask [B]` is true, for `parameters [P]` and `buffers [D - P]`.

        Returns (sum [P], (mean loss, buffers)).
        """
        way = self._taped if self.known else self._formed
        gradients, each = way(parameters, buffers, x, y, mask)
        return self._sum(gradients), (torch.where(mask, each, 0.0).sum() / mask.sum().clamp(min=1), buffers)

    def rows(self, parameters: torch.Tensor, buffers: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The clipped gradients `[B, P]` of `x [B, ...]`, `y [B]` at `parameters [P]` and `buffers [D - P]`."""
        mask = torch.ones(len(y), dtype=torch.bool, device=y.device)
        rows = torch.cat([each.rows for each in self._formed(parameters, buffers, x, y, mask)[0]])
        return rows * self._factor(rows.square().sum(dim=1))[:, None]

    def _taped(
        self, w: torch.Tensor, buffers: torch.Tensor, x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor
    ) -> tuple[list[ExampleGradients], torch.Tensor]:
        views = self.layout.views(torch.cat([w, buffers]))

        def total(shifts: list[torch.Tensor]) -> tuple[torch.Tensor, tuple[torch.Tensor, list[torch.Tensor]]]:
            self.tape.clear()
            self.tape.shifts = shifts
            each = self.losses(self.call(views, x), y) * mask
            return each.sum(), (each, list(self.tape.inputs))

        shifts = [w.new_zeros((len(y), *shape)) for shape in self.tape.shapes]
        errors, (each, inputs) = grad(total, has_aux=True)(shifts)
        self.tape.clear()
        return self._gradients(inputs, errors), each

    def _formed(
        self, w: torch.Tensor, buffers: torch.Tensor, x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor
    ) -> tuple[list[Formed], torch.Tensor]:
        def loss(w: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            views = self.layout.views(torch.cat([w.detach(), buffers])) | self.layout.views(w)  # buffers: no gradient
            return self.losses(self.call(views, x[None]), y[None]).sum()

        rows, each = vmap(grad_and_value(loss), in_dims=(None, 0, 0), randomness="different")(w, x, y)
        self.tape.clear()
        return [Formed(rows * mask[:, None])], each * mask

    def _gradients(self, inputs: list[torch.Tensor], errors: list[torch.Tensor]) -> list[ExampleGradients]:
        layers = zip(self.rules, self.tape.layers, inputs, errors, strict=True)
        return [rule(layer, entered, error) for rule, layer, entered, error in layers if rule is not None]

    def _sum(self, gradients: Sequence[ExampleGradients]) -> torch.Tensor:
        norms = sum(each.squared_norms() for each in gradients)
        assert isinstance(norms, torch.Tensor)
        factor = self._factor(norms)
        return torch.cat([each.weighted(factor) for each in gradients])

    def _factor(self, squared_norms: torch.Tensor) -> torch.Tensor:
        return 1 / (squared_norms.sqrt() / self.clip).clamp(min=1)


class Noise:
    """Noise on the sums of several rows, `[R, P]`, and the rows' nominal batch sizes. Each row has its own stream.

    The draws of a row do not depend on which other rows are trained with it.
    """

    def __init__(self, rows: int, parameters: int, std: float, device: torch.device) -> None:
        self.std = std
        self.values = torch.zeros((rows, parameters), device=device)
        self.sizes = torch.ones((rows, 1), device=device)
        self.generators = [torch.Generator(device) for _ in range(rows)]

    def begin(self, seeds: list[int], sizes: list[int]) -> None:
        """Seeds each row's generator and sets the nominal batch sizes for a round."""
        self.sizes.copy_(torch.tensor(sizes)[:, None].clamp(min=1))  # full batches of a client without examples
        for generator, seed in zip(self.generators, seeds, strict=True):
            generator.manual_seed(seed)

    def draw(self, active: np.ndarray) -> None:
        """Draws the noise of the next step for the rows that take it, `active [R]`."""
        if self.std:
            for row in np.flatnonzero(active):
                self.values[row].normal_(0, self.std, generator=self.generators[row])

    def released(self, sums: torch.Tensor) -> torch.Tensor:
        """Adds noise to the clipped sums `[R, P]` and divides them by the nominal batch sizes, in place."""
        return (sums.add_(self.values) if self.std else sums).div_(self.sizes)
