"""Manual passes of normalisation layers, like those of `manual_layers`."""

import torch
from torch import nn

from fedexp.parts.layers import BatchNorm
from fedexp.training.layers.manual_layers import LayerContext, ManualLayer

aten = torch.ops.aten


class ManualBatchNorm(ManualLayer):
    """Batch normalisation by the batch's statistics, which update the running ones."""

    def __init__(self, layer: BatchNorm, context: LayerContext) -> None:
        assert layer.running_mean is not None
        assert layer.running_var is not None
        self.weight, self.bias, self.eps = layer.weight.detach(), layer.bias.detach(), layer.eps
        self.running = (layer.running_mean.detach(), layer.running_var.detach())
        self.step, self.output_mask = layer.step, [context.needs_input_grad, True, True]
        self.grads = context.grads["weight"], context.grads["bias"]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.x = x
        y, *self.saved_statistics = torch.native_batch_norm(
            x, self.weight, self.bias, *self.running, True, self.step, self.eps
        )
        return y

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        grad_input, *entry_grads = aten.native_batch_norm_backward.default(
            grad, self.x, self.weight, *self.running, *self.saved_statistics, True, self.eps, self.output_mask
        )
        for view, entry_grad in zip(self.grads, entry_grads, strict=True):
            view.copy_(entry_grad)
        return grad if grad_input is None else grad_input


class ManualGroupNorm(ManualLayer):
    """Normalisation of each example by groups of its channels."""

    def __init__(self, layer: nn.GroupNorm, context: LayerContext) -> None:
        self.weight, self.bias, self.eps = layer.weight.detach(), layer.bias.detach(), layer.eps
        self.groups, self.output_mask = layer.num_groups, [context.needs_input_grad, True, True]
        self.grads = context.grads["weight"], context.grads["bias"]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.x = x.contiguous(memory_format=_memory_format(x))
        self.sizes = (len(x), x.shape[1], x[0, 0].numel(), self.groups)
        y, *self.saved_statistics = torch.native_group_norm(self.x, self.weight, self.bias, *self.sizes, self.eps)
        return y

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        grad = grad.contiguous(memory_format=_memory_format(self.x))
        grad_input, *entry_grads = aten.native_group_norm_backward.default(
            grad, self.x, *self.saved_statistics, self.weight, *self.sizes, self.output_mask
        )
        for view, entry_grad in zip(self.grads, entry_grads, strict=True):
            view.copy_(entry_grad)
        return grad if grad_input is None else grad_input


def _memory_format(x: torch.Tensor) -> torch.memory_format:
    last = x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last)
    return torch.channels_last if last else torch.contiguous_format
