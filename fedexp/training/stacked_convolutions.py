"""Convolutions of rows with their own weights, in three implementations that give the same numbers.

`Unfolded` copies all patches of the images side by side, so that a convolution is one product of matrices a row, all in
one kernel. `Grouped` lets PyTorch's convolution take the rows for groups, as `vmap` does: reported slower than
separate convolutions (pytorch issues 70954 and 73764). `Separate` convolves one row after another, on a GPU in several
streams. Images are `[R, B, H, W, C]`; a row's entries `[O, I]` are a kernel a line, in the order of a patch (height,
width, channel), with the bias behind it if there is one.

Which way is taken follows from shapes alone (`way_for`), so that equal runs take equal ways. **The rule is an estimate
until it is measured on a GPU.** Legend: R rows, B batch, H x W pixels, C and O channels, I entries of a kernel.
"""

import math
from abc import ABC, abstractmethod
from typing import Any

import torch

from fedexp.training.convolution_form import Form, Pair

aten = torch.ops.aten
WIDE = 512  # numbers in a patch; from here on a row's own convolution is enough work for a GPU
STREAMS = 4


class Convolving(ABC):
    """A convolution of all rows. `entries` and `grads`, `[R, O, I]`, are views of the rows and of their gradient."""

    def __init__(self, form: Form, entries: torch.Tensor, slopes: torch.Tensor, batch: int, asked: bool) -> None:
        """For batches `[R, batch, H, W, C]`; `needs_input_grad` says whether the input gradient is needed."""
        self.form, self.entries, self.slopes, self.batch, self.asked = form, entries, slopes, batch, asked

    @property
    def room(self) -> torch.Tensor | None:
        """A buffer in which its input `[R, B, H, W, C]` needs no copy; None if there is none."""
        return None

    @abstractmethod
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the output `[R, B, H, W, O]` for `x [R, B, H, W, C]`."""

    @abstractmethod
    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        """Writes the gradients of the entries; returns the input gradient `[R, B, H, W, C]` if needed."""

    def _weight(self) -> torch.Tensor:
        """Returns the kernels as PyTorch shapes them, `[R, O, C, kernel height, kernel width]`."""
        return _as_kernels(self.entries, self.form)

    def _take(self, row: int | slice, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        """Stores gradients as PyTorch shapes them, `[..., O, C, height, width]` and `[..., O]`."""
        _as_kernels(self.slopes, self.form)[row].copy_(weight)
        if bias is not None:
            self.slopes[row][..., -1].copy_(bias)


class Unfolded(Convolving):
    """Im2col: copies all patches into columns, then one matrix product a row."""

    def __init__(self, form: Form, entries: torch.Tensor, slopes: torch.Tensor, batch: int, asked: bool) -> None:
        super().__init__(form, entries, slopes, batch, asked)
        rows, (height, width), (tall, wide) = len(entries), form.size, form.padding
        self.padded: torch.Tensor | None = None
        if tall or wide:
            self.padded = entries.new_zeros((rows, batch, height + 2 * tall, width + 2 * wide, form.channels))
        self.columns = entries.new_ones((rows, batch, *form.out, form.entries))
        self.around: torch.Tensor | None = None
        if asked and form.stride == (1, 1) and min(form.around) >= 0:
            up, left = form.around
            sides = form.out[0] + 2 * up, form.out[1] + 2 * left
            self.around = entries.new_zeros((rows, batch, *sides, form.outputs))
            kernels = torch.arange(form.outputs * form.entries, device=entries.device).view(form.outputs, -1)
            turned = kernels[:, : form.patch].unflatten(1, (*form.kernel, -1)).permute(1, 2, 0, 3).flip(0, 1)
            self.turned = turned.reshape(-1)

    @property
    def room(self) -> torch.Tensor | None:
        return None if self.padded is None else _inside(self.padded, self.form.padding)

    def rooms(self, steps: int) -> torch.Tensor | None:
        """Input buffers for several steps at once, `[steps, R, B, H, W, C]`; `select_step` chooses the current."""
        if self.padded is None:
            return None
        self.turns = self.padded.new_zeros((steps, *self.padded.shape))
        return _inside(self.turns.flatten(0, 1), self.form.padding).unflatten(0, (steps, -1))

    def turn(self, step: int) -> torch.Tensor | None:
        """Makes this step's buffer the input buffer, and returns it, `[R, B, H, W, C]`."""
        self.padded = self.turns[step]
        return self.room

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        form, rows = self.form, len(x)
        if self.room is not None:
            if x.data_ptr() != self.room.data_ptr():
                self.room.copy_(x)
            x = self.padded if self.padded is not None else x
        patches = _patches(x.contiguous(), form.kernel, form.stride, form.dilation, form.out)
        self.columns[..., : form.patch].unflatten(-1, (*form.kernel, -1)).copy_(patches)
        y = torch.bmm(self.columns.view(rows, -1, form.entries), self.entries.transpose(1, 2))
        return y.view(rows, self.batch, *form.out, form.outputs)

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        form, rows = self.form, len(slope)
        columns = self.columns.view(rows, -1, form.entries)
        torch.bmm(slope.reshape(rows, -1, form.outputs).transpose(1, 2), columns, out=self.slopes)
        if not self.asked:
            return slope
        if self.around is None:
            return _given(self._weight(), slope, form)
        _inside(self.around, form.around).copy_(slope)
        patches = _patches(self.around, form.kernel, (1, 1), form.dilation, form.size)
        kernels = self.entries.flatten(1).index_select(1, self.turned).view(rows, -1, form.channels)
        x = torch.bmm(patches.reshape(rows, -1, math.prod(form.kernel) * form.outputs), kernels)
        return x.view(rows, self.batch, *form.size, form.channels)


class Grouped(Convolving):
    """PyTorch's grouped convolution with a group for every row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.x = _side_by_side(x)
        bias = self.entries[..., -1].flatten() if self.form.bias else None
        y = torch.convolution(self.x, self._weight().flatten(0, 1), bias, *self._settings(len(x)))
        return _apart(y, len(x))

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        rows, form = len(slope), self.form
        bias = [rows * form.outputs] if form.bias else None
        found = aten.convolution_backward.default(
            *(_side_by_side(slope), self.x, self._weight().flatten(0, 1), bias, *self._settings(rows)),
            [self.asked, True, form.bias],
        )
        self._take(slice(None), found[1].unflatten(0, (rows, -1)), found[2].view(rows, -1) if form.bias else None)
        return slope if found[0] is None else _apart(found[0], rows)

    def _settings(self, rows: int) -> tuple[Any, ...]:
        return self.form.settings(rows * self.form.groups)


class Separate(Convolving):
    """One convolution a row; on a GPU spread over several streams."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.x, weight, form = x, self._weight(), self.form
        y = x.new_empty((len(x), self.batch, *form.out, form.outputs))

        def one(row: int) -> None:
            bias = self.entries[row, :, -1].contiguous() if form.bias else None
            images = x[row].permute(0, 3, 1, 2)
            y[row] = torch.convolution(images, weight[row], bias, *form.settings(form.groups)).permute(0, 2, 3, 1)

        _in_streams(one, len(x), x.device)
        return y

    def backward(self, slope: torch.Tensor) -> torch.Tensor:
        weight, form = self._weight(), self.form
        given = torch.empty_like(self.x, memory_format=torch.contiguous_format) if self.asked else slope
        wanted, width = [self.asked, True, form.bias], [form.outputs] if form.bias else None

        def one(row: int) -> None:
            images, slopes = (each[row].permute(0, 3, 1, 2) for each in (self.x, slope))
            settings = form.settings(form.groups)
            found = aten.convolution_backward.default(slopes, images, weight[row], width, *settings, wanted)
            self._take(row, found[1], found[2] if form.bias else None)
            if self.asked:
                given[row] = found[0].permute(0, 2, 3, 1)

        _in_streams(one, len(slope), slope.device)
        return given


WAYS: dict[str, type[Convolving]] = {"unfolded": Unfolded, "grouped": Grouped, "separate": Separate}


def way_for(form: Form, batch: int, memory_mb: float) -> str:
    """Chooses the implementation of a convolution by its shapes and the memory available for rows.

    Groups of channels are groups of the rows' groups. Wide patches are enough work for a convolution a row, and so are
    images whose patches alone, of one row, would take a quarter of the memory. All others are unfolded.
    """
    if form.groups > 1:
        return "grouped"
    fits = 4 * batch * form.columns <= memory_mb * 1e6 / 4
    return "unfolded" if form.patch <= WIDE and fits else "separate"


def _as_kernels(entries: torch.Tensor, form: Form) -> torch.Tensor:
    """A view of `[R, O, I]` as `[R, O, C, kernel height, kernel width]`."""
    return entries[..., : form.patch].unflatten(-1, (*form.kernel, -1)).permute(0, 1, 4, 2, 3)


def _patches(x: torch.Tensor, kernel: Pair, stride: Pair, dilation: Pair, out: Pair) -> torch.Tensor:
    """Returns a view of all patches of contiguous images `[R, B, H, W, C]`: `[R, B, *out, *kernel, C]`."""
    rows, batch, _, _, channels = x.shape
    row, image, down, right, each = x.stride()
    steps = (down * stride[0], right * stride[1], down * dilation[0], right * dilation[1], each)
    return x.as_strided((rows, batch, *out, *kernel, channels), (row, image, *steps))


def _inside(x: torch.Tensor, border: Pair) -> torch.Tensor:
    """A view of images `[R, B, H, W, C]` without their border."""
    return x[:, :, border[0] : x.shape[2] - border[0], border[1] : x.shape[3] - border[1]]


def _given(weight: torch.Tensor, slope: torch.Tensor, form: Form) -> torch.Tensor:
    """Returns the input gradient `[R, B, H, W, C]` by PyTorch's grouped convolution, a group a row."""
    rows, batch = slope.shape[:2]
    like = slope.new_empty((batch, rows * form.channels, *form.size))
    settings = form.settings(rows * form.groups)
    wanted = [True, False, False]
    found = aten.convolution_backward.default(_side_by_side(slope), like, weight.flatten(0, 1), None, *settings, wanted)
    return _apart(found[0], rows)


def _side_by_side(x: torch.Tensor) -> torch.Tensor:
    """Turns images `[R, B, H, W, C]` into one batch with the rows as channels, `[B, R C, H, W]`."""
    return x.permute(1, 0, 4, 2, 3).flatten(1, 2)


def _apart(x: torch.Tensor, rows: int) -> torch.Tensor:
    """Turns one batch `[B, R C, H, W]` back into images of each row, `[R, B, H, W, C]`."""
    return x.unflatten(1, (rows, -1)).permute(1, 0, 3, 4, 2).contiguous()


def _in_streams(one: Any, rows: int, device: torch.device) -> None:
    if device.type != "cuda":
        for row in range(rows):
            one(row)
        return
    here, sides = torch.cuda.current_stream(), [torch.cuda.Stream() for _ in range(min(STREAMS, rows))]
    for side in sides:
        side.wait_stream(here)
    for row in range(rows):
        with torch.cuda.stream(sides[row % len(sides)]):
            one(row)
    for side in sides:
        here.wait_stream(side)
