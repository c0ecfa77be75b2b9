"""Max pooling; signals `[C, W]` are images of height 1. Legend: R rows, B batch, H x W pixels, C channels."""

import torch
from torch import nn

from fedexp.training.layers.kind import Activations, Entries, LayerKind, evaluate_as_is
from fedexp.training.layers.layer_pass import LayerPass

aten = torch.ops.aten
MaxPool = nn.MaxPool1d | nn.MaxPool2d


class ManualPool(LayerPass):
    """Max pooling of `[B, C, H, W]` or `[B, C, W]`."""

    saved = ("x", "index")

    def __init__(self, layer: MaxPool) -> None:
        self.signals = isinstance(layer, nn.MaxPool1d)
        sizes = (layer.kernel_size, layer.stride, layer.padding, layer.dilation)
        heights = ((1,), (1,), (0,), (1,)) if self.signals else ((),) * 4
        self.settings = (
            *((*height, *_as_tuple(size)) for height, size in zip(heights, sizes, strict=True)),
            layer.ceil_mode,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.x = x.unsqueeze(2) if self.signals else x
        y, self.index = aten.max_pool2d_with_indices.default(self.x, *self.settings)
        return y.squeeze(2) if self.signals else y

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        grad = grad.unsqueeze(2) if self.signals else grad
        grad = aten.max_pool2d_with_indices_backward.default(grad, self.x, *self.settings, self.index)
        return grad.squeeze(2) if self.signals else grad


class BatchedPool(ManualPool):
    """Max pooling of `[R, B, H, W, C]`: the images of all rows are one batch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.x, self.rows = x.flatten(0, 1).permute(0, 3, 1, 2), len(x)
        y, self.index = aten.max_pool2d_with_indices.default(self.x, *self.settings)
        return y.permute(0, 2, 3, 1).contiguous().unflatten(0, (self.rows, -1))

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        grad = grad.flatten(0, 1).permute(0, 3, 1, 2)
        grad_input = aten.max_pool2d_with_indices_backward.default(grad, self.x, *self.settings, self.index)
        return grad_input.permute(0, 2, 3, 1).contiguous().unflatten(0, (self.rows, -1))


def evaluate_2x2_pool(_layer: nn.Module, _entries: Entries, flow: Activations, _rows: int) -> Activations:
    """Evaluates max pooling of 2 x 2 pixels."""
    return Activations(max_pool_2x2(flow.x), flow.form)


def is_2x2_pool(layer: nn.Module) -> bool:
    """Whether a layer is a 2 x 2 max pooling with stride 2 and no other options."""
    if type(layer) is not nn.MaxPool2d or layer.return_indices:
        return False
    return (layer.kernel_size, layer.stride, layer.padding, layer.dilation, layer.ceil_mode) == (2, 2, 0, 1, False)


def max_pool_2x2(x: torch.Tensor) -> torch.Tensor:
    """Max pooling of 2 x 2 pixels of `x [B, C, H, W]`, as maxima of strided views: twice as fast as PyTorch's.

    Without gradients, on a CPU: it need not store the positions of the maxima.
    """
    if x.dim() != 4:  # [C, H, W] of one example, or signals that PyTorch takes for it
        return nn.functional.max_pool2d(x, 2)
    height, width = (side // 2 * 2 for side in x.shape[2:])
    tall = torch.maximum(x[:, :, 0:height:2, :width], x[:, :, 1:height:2, :width])
    return torch.maximum(tall[..., 0::2], tall[..., 1::2])


def _as_tuple(size: int | tuple[int, ...] | list[int]) -> tuple[int, ...]:
    return tuple(size) if isinstance(size, tuple | list) else (size,)


KINDS = (
    LayerKind(
        types=(nn.MaxPool1d, nn.MaxPool2d),
        manual=lambda pool, _: ManualPool(pool),
        batched=lambda planned, _: BatchedPool(planned.layer),
        supports=lambda pool, shape: not pool.return_indices and len(shape) == (2 if type(pool) is nn.MaxPool1d else 3),
        output_shape=lambda pool, shape: (shape[0], *pool(torch.empty(1, *shape[1:])).shape[1:]),
        inference=lambda pool, _: max_pool_2x2 if is_2x2_pool(pool) else None,
        evaluator=lambda pool: evaluate_2x2_pool if is_2x2_pool(pool) else evaluate_as_is,
        commutes_with=(nn.ReLU,),  # gradients included; ReLU then has a fraction of the work
    ),
)
