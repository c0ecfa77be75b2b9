"""Batch and group normalisation.

In batched passes their gradients come from autograd, in full precision. Legend: G and R rows, B batch, H x W pixels, C
channels.
"""

from abc import abstractmethod

import torch
from torch import nn
from torch.nn import functional as F

from fedexp.parts.layers import BatchNorm
from fedexp.training.layers.example_gradients import LayerGradients, MaterialisedGradients
from fedexp.training.layers.kind import Activations, Entries, LayerKind, PlannedLayer, Shape
from fedexp.training.layers.layer_pass import BatchedContext, LayerPass, ManualContext

aten = torch.ops.aten


class ManualNorm(LayerPass):
    """A normalisation of one row by one of PyTorch's kernels, which keeps statistics for its gradient."""

    def __init__(self, layer: BatchNorm | nn.GroupNorm, context: ManualContext) -> None:
        self.weight, self.bias, self.eps = layer.weight.detach(), layer.bias.detach(), layer.eps
        self.output_mask = [context.needs_input_grad, True, True]
        self.grads = context.grads["weight"], context.grads["bias"]

    def store(self, grad: torch.Tensor, grads: tuple[torch.Tensor | None, ...]) -> torch.Tensor:
        """Stores the entries' gradients `grads[1:]`, `[C]`; returns that of the input, `[B, ...]`, or `grad`."""
        grad_input, *entry_grads = grads
        for view, entry_grad in zip(self.grads, entry_grads, strict=True):
            assert entry_grad is not None
            view.copy_(entry_grad)
        return grad if grad_input is None else grad_input


class ManualBatchNorm(ManualNorm):
    """Batch normalisation of one row."""

    min_batch = 2

    def __init__(self, layer: BatchNorm, context: ManualContext) -> None:
        super().__init__(layer, context)
        assert layer.running_mean is not None
        assert layer.running_var is not None
        self.running = (layer.running_mean.detach(), layer.running_var.detach())
        self.step = layer.step

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.x = x
        y, *self.saved_statistics = torch.native_batch_norm(
            x, self.weight, self.bias, *self.running, True, self.step, self.eps
        )
        return y

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        grads = aten.native_batch_norm_backward.default(
            grad, self.x, self.weight, *self.running, *self.saved_statistics, True, self.eps, self.output_mask
        )
        return self.store(grad, grads)


class ManualGroupNorm(ManualNorm):
    """Group normalisation of one row."""

    def __init__(self, layer: nn.GroupNorm, context: ManualContext) -> None:
        super().__init__(layer, context)
        self.groups = layer.num_groups

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.x = x.contiguous(memory_format=_memory_format(x))
        self.sizes = (len(x), x.shape[1], x[0, 0].numel(), self.groups)
        y, *self.saved_statistics = torch.native_group_norm(self.x, self.weight, self.bias, *self.sizes, self.eps)
        return y

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        grad = grad.contiguous(memory_format=_memory_format(self.x))
        grads = aten.native_group_norm_backward.default(
            grad, self.x, *self.saved_statistics, self.weight, *self.sizes, self.output_mask
        )
        return self.store(grad, grads)


def _memory_format(x: torch.Tensor) -> torch.memory_format:
    last = x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last)
    return torch.channels_last if last else torch.contiguous_format


class BatchedNorm(LayerPass):
    """A normalisation of several rows, differentiated by autograd; its entries are scales and shifts, `[R, 2, C]`."""

    saved = ("y", "leaves")

    def __init__(self, planned: PlannedLayer, context: BatchedContext) -> None:
        self.entries, self.grads, self.eps = context.entries, context.grads, planned.layer.eps

    @abstractmethod
    def normalise(self, x: torch.Tensor, scale: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
        """Returns images `[R, B, H, W, C]` normalised, for scales and shifts `[R, 1, 1, 1, C]`."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.input_dtype = x.dtype
        with torch.enable_grad():
            entries = [tensor.clone() for tensor in self.entries.unbind(1)]  # running statistics move in the same rows
            self.leaves = [tensor.detach().requires_grad_() for tensor in (x.to(entries[0].dtype), *entries)]
            scale, shift = (tensor[:, None, None, None] for tensor in self.leaves[1:])
            self.y = self.normalise(self.leaves[0], scale, shift)
        return self.y.detach()

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        grad_input, *entry_grads = torch.autograd.grad(self.y, self.leaves, grad.to(self.y.dtype))
        torch.stack(entry_grads, dim=1, out=self.grads)
        del self.y
        return grad_input.to(self.input_dtype)


class BatchedGroupNorm(BatchedNorm):
    """Group normalisation of several rows."""

    def __init__(self, planned: PlannedLayer, context: BatchedContext) -> None:
        super().__init__(planned, context)
        self.groups = planned.layer.num_groups

    def normalise(self, x: torch.Tensor, scale: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
        channels_first = x.flatten(0, 1).permute(0, 3, 1, 2).contiguous()
        y = F.group_norm(channels_first, self.groups, eps=self.eps)
        return y.permute(0, 2, 3, 1).unflatten(0, x.shape[:2]) * scale + shift


class BatchedBatchNorm(BatchedNorm):
    """Batch normalisation by each row's unmasked examples; a forward pass moves the running statistics."""

    needs_share = True

    def __init__(self, planned: PlannedLayer, context: BatchedContext) -> None:
        super().__init__(planned, context)
        self.step = planned.layer.step
        self.running = context.buffers["running_mean"], context.buffers["running_var"]

    def normalise(self, x: torch.Tensor, scale: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
        weight = (self.share > 0).to(x.dtype)[:, :, None, None, None]
        count = weight.sum(dim=(1, 2, 3, 4))[:, None] * (x.shape[2] * x.shape[3])  # [R, 1]
        total = count.clamp(min=1)
        mean = (x * weight).sum(dim=(1, 2, 3)) / total
        centred = x - mean[:, None, None, None]
        var = (centred.square() * weight).sum(dim=(1, 2, 3)) / total
        self._update_running(mean.detach(), (var * count / (count - 1).clamp(min=1)).detach(), count)
        return centred * (scale * torch.rsqrt(var + self.eps)[:, None, None, None]) + shift

    def _update_running(self, mean: torch.Tensor, var: torch.Tensor, count: torch.Tensor) -> None:
        step = self.step * (count > 0)
        with torch.no_grad():
            for statistic, new in zip(self.running, (mean, var), strict=True):
                statistic.add_(torch.where(count > 0, step * (new - statistic), 0.0))


def supports_batch_norm(layer: BatchNorm, shape: Shape) -> bool:
    """Whether a layer normalises images as it was built to."""
    return layer.affine and layer.track_running_stats and layer.momentum == layer.step and len(shape) == 3


def scales_and_shifts(entries: Entries, _flattened: Shape | None) -> torch.Tensor:
    """Returns the entries `[C]` of a normalising layer as `[2, C]`."""
    return torch.stack([entries["weight"], entries["bias"]])


def evaluate_batch_norm(layer: BatchNorm, entries: Entries, flow: Activations, rows: int) -> Activations:
    """Evaluates batch normalisation with its running statistics."""
    flat = {name: values.flatten() for name, values in entries.items()}
    mean, var = flat["running_mean"], flat["running_var"]
    y = F.batch_norm(flow.channels(rows), mean, var, flat["weight"], flat["bias"], eps=layer.eps)
    return Activations(y, "channels")


def evaluate_group_norm(layer: nn.GroupNorm, entries: Entries, flow: Activations, rows: int) -> Activations:
    """Evaluates group normalisation: the channels of a row lie side by side, so no group reaches into another row."""
    weight, bias = entries["weight"].flatten(), entries["bias"].flatten()
    y = F.group_norm(flow.channels(rows), rows * layer.num_groups, weight, bias, eps=layer.eps)
    return Activations(y, "channels")


def group_norm_gradients(layer: nn.GroupNorm, inputs: torch.Tensor, errors: torch.Tensor) -> LayerGradients:
    """Returns the gradients of each channel's scale and shift; `inputs` and `errors` are `[B, C, ...]`."""
    normal = F.group_norm(inputs, layer.num_groups, eps=layer.eps)
    channels = errors.shape[:2]
    scale, shift = ((errors * normal).reshape(*channels, -1).sum(dim=2), errors.reshape(*channels, -1).sum(dim=2))
    return MaterialisedGradients(torch.cat([scale, shift], dim=1))


KINDS = (
    LayerKind(
        types=(BatchNorm,),
        manual=ManualBatchNorm,
        batched=BatchedBatchNorm,
        supports=supports_batch_norm,
        entry_lines=scales_and_shifts,
        evaluator=lambda _: evaluate_batch_norm,
    ),
    LayerKind(
        types=(nn.GroupNorm,),
        manual=ManualGroupNorm,
        batched=BatchedGroupNorm,
        supports=lambda norm, shape: norm.affine and len(shape) > 1,
        entry_lines=scales_and_shifts,
        evaluator=lambda _: evaluate_group_norm,
        gradient_rule=lambda norm: group_norm_gradients if norm.affine else None,
    ),
)
