"""DP-SGD gradients for every engine: each example's gradient is clipped, and noise is added to their sum.

g_bar = g / max(1, ||g||_2 / C) over all parameters of the model together; (sum g_bar + N(0, sigma^2 C^2 I)) / B with
the nominal B, however many examples a batch holds (Abadi et al. 2016, algorithm 1). A gradient of norm zero stays zero.

Layers of a kind that has a rule for it are clipped from their inputs and the gradients at their outputs, which costs
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
from fedexp.training.client.objective import Losses
from fedexp.training.client.parameter_views import FunctionalNetwork
from fedexp.training.layers.example_gradients import LayerGradients, MaterialisedGradients
from fedexp.training.layers.registry import kind_of
from fedexp.training.per_example.activation_tape import ActivationTape

Tensors = tuple[torch.Tensor, ...]


class ClippedGradientSum:
    """The sum over a batch of per-example gradients, each clipped at norm `clip`."""

    def __init__(self, network: nn.Module, layout: Layout, clip: float, example: torch.Tensor, losses: Losses) -> None:
        """`example [1, ...]` is one input, used to measure the layers' output shapes."""
        self.network, self.layout, self.clip, self.losses = network, layout, clip, losses
        self.functional_network, self.tape = FunctionalNetwork(network), ActivationTape(network, example)
        kinds = [kind_of(layer) for layer in self.tape.layers]
        self.rules = [kind and kind.gradient_rule(layer) for kind, layer in zip(kinds, self.tape.layers, strict=True)]
        self.uses_tape = self.tape.is_complete and all(rule is not None for rule in self.rules)

    @property
    def materialised_floats(self) -> int:
        """Floats of one example's materialised gradients, and of its convolution patches."""
        if not self.uses_tape:
            return self.layout.parameters
        entries = 0
        for layer, shape in zip(self.tape.layers, self.tape.shapes, strict=True):
            if not isinstance(layer, nn.Linear):
                parameters = sum(entry.numel() for entry in layer.parameters())
                entries += parameters + parameters * math.prod(shape[1:]) // shape[0]
        return entries

    def batch_sum(self, row: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> Tensors:
        """(sum [P], mean loss) of `x [B, ...]` and `y [B]` for a network whose entries are views of `row [D]`.

        Both are 0 for an empty batch.
        """
        if len(y) == 0:
            return row.new_zeros(self.layout.parameters), row.new_zeros(())
        if not self.uses_tape:
            w, buffers = row.split([self.layout.parameters, self.layout.size - self.layout.parameters])
            total, (loss, _) = self.clipped_sum(w, buffers, x, y, torch.ones(len(y), dtype=torch.bool, device=y.device))
            return total, loss
        self.tape.clear()
        losses = self.losses(self.network(x), y)
        errors = torch.autograd.grad(losses.sum(), self.tape.outputs, materialize_grads=True)
        with torch.no_grad():
            inputs = [entry.detach() for entry in self.tape.inputs]
            return self._sum(self._gradients(self.tape.calls, inputs, list(errors))), losses.detach().mean()

    def clipped_sum(
        self, parameters: torch.Tensor, buffers: torch.Tensor, x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor
    ) -> tuple[torch.Tensor, Tensors]:
        """The clipped sum over the examples where `mask [B]` is true, for `parameters [P]` and `buffers [D - P]`.

        Returns (sum [P], (mean loss, buffers)).
        """
        compute = self._gradients_by_tape if self.uses_tape else self._gradients_by_vmap
        gradients, losses = compute(parameters, buffers, x, y, mask)
        return self._sum(gradients), (torch.where(mask, losses, 0.0).sum() / mask.sum().clamp(min=1), buffers)

    def per_example(
        self, parameters: torch.Tensor, buffers: torch.Tensor, x: torch.Tensor, y: torch.Tensor
    ) -> torch.Tensor:
        """The clipped gradients `[B, P]` of `x [B, ...]`, `y [B]` at `parameters [P]` and `buffers [D - P]`."""
        mask = torch.ones(len(y), dtype=torch.bool, device=y.device)
        rows = torch.cat([gradient.rows for gradient in self._gradients_by_vmap(parameters, buffers, x, y, mask)[0]])
        return rows * self._factor(rows.square().sum(dim=1))[:, None]

    def _gradients_by_tape(
        self, w: torch.Tensor, buffers: torch.Tensor, x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor
    ) -> tuple[list[LayerGradients], torch.Tensor]:
        views = self.layout.views(torch.cat([w, buffers]))

        def total(shifts: list[torch.Tensor]) -> tuple[torch.Tensor, tuple[torch.Tensor, list[torch.Tensor]]]:
            self.tape.clear()
            self.tape.shifts = shifts
            losses = self.losses(self.functional_network(views, x), y) * mask
            return losses.sum(), (losses, list(self.tape.inputs))

        shifts = [w.new_zeros((len(y), *shape)) for shape in self.tape.shapes]
        errors, (losses, inputs) = grad(total, has_aux=True)(shifts)
        calls = list(self.tape.calls)
        self.tape.clear()
        return self._gradients(calls, inputs, errors), losses

    def _gradients_by_vmap(
        self, w: torch.Tensor, buffers: torch.Tensor, x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor
    ) -> tuple[list[MaterialisedGradients], torch.Tensor]:
        def loss(w: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            views = self.layout.views(torch.cat([w.detach(), buffers])) | self.layout.views(w)  # buffers: no gradient
            return self.losses(self.functional_network(views, x[None]), y[None]).sum()

        rows, losses = vmap(grad_and_value(loss), in_dims=(None, 0, 0), randomness="different")(w, x, y)
        self.tape.clear()
        return [MaterialisedGradients(rows * mask[:, None])], losses * mask

    def _gradients(
        self, calls: list[int], inputs: list[torch.Tensor], errors: list[torch.Tensor]
    ) -> list[LayerGradients]:
        """Gradients of all layers, of which those in `calls` were called; those of a layer that was left out are 0."""
        if len(calls) != len(inputs) or len({*calls}) != len(calls):
            raise RuntimeError("a layer is called more often, or with other arguments, in training than in evaluation")
        records, gradients = dict(zip(calls, zip(inputs, errors, strict=True), strict=True)), []
        for number, (rule, layer) in enumerate(zip(self.rules, self.tape.layers, strict=True)):
            assert rule is not None
            if number in records:
                gradients.append(rule(layer, *records[number]))
            else:
                entries = sum(entry.numel() for entry in layer.parameters(recurse=False))
                gradients.append(MaterialisedGradients(errors[0].new_zeros((len(errors[0]), entries))))
        return gradients

    def _sum(self, gradients: Sequence[LayerGradients]) -> torch.Tensor:
        norms = sum(gradient.squared_norms() for gradient in gradients)
        assert isinstance(norms, torch.Tensor)
        factor = self._factor(norms)
        return torch.cat([gradient.weighted_sum(factor) for gradient in gradients])

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

    def privatise(self, sums: torch.Tensor) -> torch.Tensor:
        """Adds noise to the clipped sums `[R, P]` and divides them by the nominal batch sizes, in place."""
        return (sums.add_(self.values) if self.std else sums).div_(self.sizes)
