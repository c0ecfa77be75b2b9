"""Convolutions of rows with their own weights, in three implementations that give the same numbers.

`Im2col` copies all patches of the images side by side, so that a convolution is one product of matrices a row, all in
one kernel. `GroupedConvolution` lets PyTorch's convolution take the rows for groups, as `vmap` does: reported slower
than separate convolutions (pytorch issues 70954 and 73764). `PerRowConvolution` convolves one row after another, on a
GPU in several streams. Images are `[R, B, H, W, C]`; a row's entries `[O, I]` are a kernel a line, in the order of a
patch (height, width, channel), with the bias behind it if there is one.

`choice.py` says which way is taken. Legend: R rows, B batch, H x W pixels, C and O channels, I entries of a kernel.
"""

import math
from functools import cache
from typing import Any

import torch

from fedexp.training.layers.kind import PlannedLayer
from fedexp.training.layers.kinds.convolution.choice import choose_implementation, choose_pieces
from fedexp.training.layers.kinds.convolution.spec import ConvolutionSpec, Pair
from fedexp.training.layers.layer_pass import BatchedContext, LayerPass, whole_lines

aten = torch.ops.aten
MAX_STREAMS = 4


class BatchedConvolution(LayerPass):
    """A convolution of all rows, `[R, B, H, W, C]`, by their entries `[R, O, I]`."""

    def __init__(self, spec: ConvolutionSpec, context: BatchedContext) -> None:
        self.spec, self.entries, self.grads = spec, context.entries, context.grads
        self.batch, self.needs_input_grad = context.batch, context.needs_input_grad

    def _kernels(self) -> torch.Tensor:
        """Returns the kernels as PyTorch shapes them, `[R, O, C, kernel height, kernel width]`."""
        return _as_kernels(self.entries, self.spec)

    def _write_grads(self, row: int | slice, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        """Stores gradients as PyTorch shapes them, `[..., O, C, height, width]` and `[..., O]`."""
        _as_kernels(self.grads, self.spec)[row].copy_(weight)
        if bias is not None:
            self.grads[row][..., -1].copy_(bias)


class Im2col(BatchedConvolution):
    """Im2col: copies all patches into columns, then one matrix product a row."""

    def __init__(self, spec: ConvolutionSpec, context: BatchedContext) -> None:
        super().__init__(spec, context)
        entries, batch = self.entries, self.batch
        self.lines, self.grad_lines = whole_lines(entries), whole_lines(self.grads)
        length = self.lines.shape[2]
        rows, (height, width), (vertical, horizontal) = len(entries), spec.input_size, spec.padding
        self.padded: torch.Tensor | None = None
        if vertical or horizontal:
            self.padded = entries.new_zeros((rows, batch, height + 2 * vertical, width + 2 * horizontal, spec.channels))
        self.columns = entries.new_zeros((rows, batch, *spec.output_size, length))
        self.columns[..., : spec.entries_per_output] = 1
        self.pieces = choose_pieces(batch * math.prod(spec.output_size), (rows, spec.outputs, length))
        self.padded_grad: torch.Tensor | None = None
        if self.needs_input_grad and spec.stride == (1, 1) and min(spec.grad_padding) >= 0:
            top, side = spec.grad_padding
            sides = spec.output_size[0] + 2 * top, spec.output_size[1] + 2 * side
            self.padded_grad = entries.new_zeros((rows, batch, *sides, spec.outputs))
            kernels = torch.arange(spec.outputs * length, device=entries.device).view(spec.outputs, -1)
            patch_positions = kernels[:, : spec.patch_size].unflatten(1, (*spec.kernel, -1))
            self.flipped_kernels = patch_positions.permute(1, 2, 0, 3).flip(0, 1).reshape(-1)

    @property
    def input_buffer(self) -> torch.Tensor | None:
        return None if self.padded is None else _without_border(self.padded, self.spec.padding)

    def input_buffers(self, steps: int) -> torch.Tensor | None:
        if self.padded is None:
            return None
        self.padded_steps = self.padded.new_zeros((steps, *self.padded.shape))
        return _without_border(self.padded_steps.flatten(0, 1), self.spec.padding).unflatten(0, (steps, -1))

    def select_step(self, step: int) -> torch.Tensor:
        self.padded = self.padded_steps[step]
        return _without_border(self.padded, self.spec.padding)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        spec, rows = self.spec, len(x)
        if self.input_buffer is not None:
            if x.data_ptr() != self.input_buffer.data_ptr():
                self.input_buffer.copy_(x)
            x = self.padded if self.padded is not None else x
        patches = _patches(x.contiguous(), spec.kernel, spec.stride, spec.dilation, spec.output_size)
        self.columns[..., : spec.patch_size].unflatten(-1, (*spec.kernel, -1)).copy_(patches)
        y = torch.bmm(self.columns.flatten(1, 3), self.lines.transpose(1, 2))
        return y.view(rows, self.batch, *spec.output_size, spec.outputs)

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        spec, rows = self.spec, len(grad)
        self._sum_grad_lines(grad)
        if not self.needs_input_grad:
            return grad
        if self.padded_grad is None:
            return _input_grad(self._kernels(), grad, spec)
        _without_border(self.padded_grad, spec.grad_padding).copy_(grad)
        patches = _patches(self.padded_grad, spec.kernel, (1, 1), spec.dilation, spec.input_size)
        kernels = self.lines.flatten(1).index_select(1, self.flipped_kernels).view(rows, -1, spec.channels)
        x = torch.bmm(patches.reshape(rows, -1, math.prod(spec.kernel) * spec.outputs), kernels)
        return x.view(rows, self.batch, *spec.input_size, spec.channels)

    def _sum_grad_lines(self, grad: torch.Tensor) -> None:
        """Sums the gradients of the entries over all pixels: in pieces, where one product of them leaves a GPU idle."""
        outputs, length = self.grad_lines.shape[1:]
        pieces = len(grad) * self.pieces
        of_pieces = grad.reshape(pieces, -1, outputs).transpose(1, 2), self.columns.view(pieces, -1, length)
        if self.pieces == 1:
            torch.bmm(*of_pieces, out=self.grad_lines)
        else:
            torch.sum(torch.bmm(*of_pieces).unflatten(0, (-1, self.pieces)), dim=1, out=self.grad_lines)


class GroupedConvolution(BatchedConvolution):
    """PyTorch's grouped convolution with a group for every row."""

    saved = ("x",)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.x = _rows_to_channels(x)
        bias = self.entries[..., -1].flatten() if self.spec.bias else None
        y = torch.convolution(self.x, self._kernels().flatten(0, 1), bias, *self._settings(len(x)))
        return _channels_to_rows(y, len(x))

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        rows, spec = len(grad), self.spec
        bias = [rows * spec.outputs] if spec.bias else None
        results = aten.convolution_backward.default(
            *(_rows_to_channels(grad), self.x, self._kernels().flatten(0, 1), bias, *self._settings(rows)),
            [self.needs_input_grad, True, spec.bias],
        )
        self._write_grads(
            slice(None), results[1].unflatten(0, (rows, -1)), results[2].view(rows, -1) if spec.bias else None
        )
        return grad if results[0] is None else _channels_to_rows(results[0], rows)

    def _settings(self, rows: int) -> tuple[Any, ...]:
        return self.spec.settings(rows * self.spec.groups)


class PerRowConvolution(BatchedConvolution):
    """One convolution a row; on a GPU spread over several streams."""

    saved = ("x",)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.x, weight, spec = x, self._kernels(), self.spec
        y = x.new_empty((len(x), self.batch, *spec.output_size, spec.outputs))

        def convolve(row: int) -> None:
            bias = self.entries[row, :, -1].contiguous() if spec.bias else None
            images = x[row].permute(0, 3, 1, 2)
            y[row] = torch.convolution(images, weight[row], bias, *spec.settings(spec.groups)).permute(0, 2, 3, 1)

        _run_in_streams(convolve, len(x), x.device)
        return y

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        weight, spec = self._kernels(), self.spec
        grad_input = torch.empty_like(self.x, memory_format=torch.contiguous_format) if self.needs_input_grad else grad
        mask, bias_sizes = [self.needs_input_grad, True, spec.bias], [spec.outputs] if spec.bias else None

        def differentiate(row: int) -> None:
            images, row_grad = (tensor[row].permute(0, 3, 1, 2) for tensor in (self.x, grad))
            settings = spec.settings(spec.groups)
            results = aten.convolution_backward.default(row_grad, images, weight[row], bias_sizes, *settings, mask)
            self._write_grads(row, results[1], results[2] if spec.bias else None)
            if self.needs_input_grad:
                grad_input[row] = results[0].permute(0, 2, 3, 1)

        _run_in_streams(differentiate, len(grad), grad.device)
        return grad_input


IMPLEMENTATIONS: dict[str, type[BatchedConvolution]] = {
    "unfolded": Im2col,
    "grouped": GroupedConvolution,
    "separate": PerRowConvolution,
}


def build_batched_convolution(planned: PlannedLayer, context: BatchedContext) -> BatchedConvolution:
    """Returns the pass of several rows by the implementation that is chosen."""
    spec = ConvolutionSpec.of(planned.layer, planned.shape)
    rounds = context.entries.dtype != torch.float32 or bool(torch.backends.cuda.matmul.allow_tf32)
    return IMPLEMENTATIONS[choose_implementation(spec, context.batch, context.memory_mb, rounds=rounds)](spec, context)


def _as_kernels(entries: torch.Tensor, spec: ConvolutionSpec) -> torch.Tensor:
    """A view of `[R, O, I]` as `[R, O, C, kernel height, kernel width]`."""
    return entries[..., : spec.patch_size].unflatten(-1, (*spec.kernel, -1)).permute(0, 1, 4, 2, 3)


def _patches(x: torch.Tensor, kernel: Pair, stride: Pair, dilation: Pair, out: Pair) -> torch.Tensor:
    """Returns a view of all patches of contiguous images `[R, B, H, W, C]`: `[R, B, *out, *kernel, C]`."""
    rows, batch, _, _, channels = x.shape
    row, image, down, right, channel = x.stride()
    steps = (down * stride[0], right * stride[1], down * dilation[0], right * dilation[1], channel)
    return x.as_strided((rows, batch, *out, *kernel, channels), (row, image, *steps))


def _without_border(x: torch.Tensor, border: Pair) -> torch.Tensor:
    """A view of images `[R, B, H, W, C]` without their border."""
    return x[:, :, border[0] : x.shape[2] - border[0], border[1] : x.shape[3] - border[1]]


def _input_grad(weight: torch.Tensor, grad: torch.Tensor, spec: ConvolutionSpec) -> torch.Tensor:
    """Returns the input gradient `[R, B, H, W, C]` by PyTorch's grouped convolution, a group a row."""
    rows, batch = grad.shape[:2]
    input_like = grad.new_empty((batch, rows * spec.channels, *spec.input_size))
    arguments = input_like, weight.flatten(0, 1), None, *spec.settings(rows * spec.groups)
    results = aten.convolution_backward.default(_rows_to_channels(grad), *arguments, [True, False, False])
    return _channels_to_rows(results[0], rows)


def _rows_to_channels(x: torch.Tensor) -> torch.Tensor:
    """Turns images `[R, B, H, W, C]` into one batch with the rows as channels, `[B, R C, H, W]`."""
    return x.permute(1, 0, 4, 2, 3).flatten(1, 2)


def _channels_to_rows(x: torch.Tensor, rows: int) -> torch.Tensor:
    """Turns one batch `[B, R C, H, W]` back into images of each row, `[R, B, H, W, C]`."""
    return x.unflatten(1, (rows, -1)).permute(1, 0, 3, 4, 2).contiguous()


@cache
def _side_streams(device: torch.device) -> list[torch.cuda.Stream]:
    """The streams of a device, made once: memory that was freed on a stream is used again on that stream only."""
    return [torch.cuda.Stream(device) for _ in range(MAX_STREAMS)]


def _run_in_streams(job: Any, rows: int, device: torch.device) -> None:
    if device.type != "cuda":
        for row in range(rows):
            job(row)
        return
    current, sides = torch.cuda.current_stream(), _side_streams(device)[:rows]
    for side in sides:
        side.wait_stream(current)
    for row in range(rows):
        with torch.cuda.stream(sides[row % len(sides)]):
            job(row)
    for side in sides:
        current.wait_stream(side)
