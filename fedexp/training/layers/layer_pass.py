"""The forward and backward pass of one layer, without autograd, and what it is built from.

A layer keeps of its last forward pass what its backward pass needs, and writes the gradients of its entries into views
of a flat gradient. There are two kinds of passes, which every layer has:

* A manual pass trains one row. It calls PyTorch's kernels as autograd calls them, in the same order, so the bits are
  the same, too. Data is `[B, ...]` as PyTorch has it.
* A batched pass trains rows with their own entries at once, without vmap. Data is `[R, B, H, W, C]`, channels last, or
  `[R, B, F]`; a signal is an image of height 1. A layer's entries are a view `[R, O, I]` of the rows: a line an output,
  its bias last, so that a one behind the inputs adds it, and the gradients of both come out of one product. Lines in
  bfloat16 may have zeros behind them (`whole_lines`). Persistent tensors (borders of zeros, columns of ones) are made
  once, before a GPU captures a step.

Legend: R rows, B batch, H x W pixels, C channels, F features, O outputs, I entries a line.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from fedexp.training.client.keyed_random import KeyedRandom


class LayerPass(ABC):
    """A layer of a chain, for one row or for several; data `[B, ...]` or `[R, B, ...]`."""

    can_overwrite_output = True  # whether its output is a tensor of its own, which it does not need again
    min_batch = 1  # examples that its forward pass needs
    needs_share = False  # whether it reads `share`, which is then set before each forward pass
    share: torch.Tensor  # the weight of each example in the mean over its batch, [R, B]: 0 where there is none
    output_buffer: torch.Tensor | None = None  # where the next layer wants its input, if it has a preference
    saved: tuple[str, ...] = ()  # of a batched pass: the attributes that keep tensors for the backward pass

    @property
    def input_buffer(self) -> torch.Tensor | None:
        """A buffer `[R, B, ...]` in which its input needs no copy; None if there is none."""
        return None

    def input_buffers(self, steps: int) -> torch.Tensor | None:
        """Input buffers for several steps at once, `[steps, R, B, ...]`, if it has them; `select_step` chooses one."""
        return None

    def select_step(self, step: int) -> torch.Tensor:
        """Makes this step's buffer the input buffer, and returns it, `[R, B, ...]`."""
        raise NotImplementedError(f"{type(self).__name__} has no input buffer for step {step}")

    def output_buffer_for(self, x: torch.Tensor) -> torch.Tensor | None:
        """Returns the output buffer if its dtype is that of `x` (any shape), else None."""
        return self.output_buffer if self.output_buffer is not None and self.output_buffer.dtype == x.dtype else None

    def release(self) -> None:
        """Lets go of all tensors of the last batched forward pass."""
        for name in ("share", *self.saved):
            vars(self).pop(name, None)

    @abstractmethod
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the layer's output for `x`, `[B, ...]` or `[R, B, ...]`."""

    @abstractmethod
    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        """Returns the input gradient `[B, ...]` or `[R, B, ...]`, given that of the output; arbitrary if not needed."""


@dataclass(frozen=True)
class ManualContext:
    """What a manual pass needs to know of its position in a chain.

    `grads` are the views that take the gradients of its entries, by name. `needs_input_grad` says whether somebody
    needs the gradient at its input, `can_overwrite_input` whether nobody needs the input again. `keyed_random` is what
    dropout is drawn from, if the network draws at all.
    """

    grads: dict[str, torch.Tensor]
    needs_input_grad: bool
    can_overwrite_input: bool
    keyed_random: KeyedRandom | None


@dataclass(frozen=True)
class BatchedContext:
    """What a batched pass is built from: its `entries` and their `grads`, `[R, O, I]`, and its `buffers`, by name.

    `batch` is the number of examples of a row, `memory_mb` what all rows may take. `needs_input_grad` and
    `keyed_random` are those of `ManualContext`.
    """

    entries: torch.Tensor
    grads: torch.Tensor
    buffers: dict[str, torch.Tensor]
    batch: int
    memory_mb: float
    needs_input_grad: bool
    keyed_random: KeyedRandom | None


def whole_lines(entries: torch.Tensor) -> torch.Tensor:
    """Views entries `[R, O, I]` with the zeros that lie behind each line, `[R, O, I or more]`."""
    return entries.as_strided((*entries.shape[:2], entries.stride(1)), entries.stride())


class ChainPass:
    """The passes of a chain of layers, forwards and backwards. A batch needs at least `min_batch` examples."""

    def __init__(self, layers: Sequence[LayerPass], first: int) -> None:
        """`first` is the position of the first layer with entries; gradients before it are not needed."""
        self.layers = layers
        self.min_batch = max(layer.min_batch for layer in layers)
        self.share_readers = [layer for layer in layers if layer.needs_share]
        self.forward_steps = [layer.forward for layer in layers]
        self.backward_steps = [layer.backward for layer in reversed(layers[first:])]

    def forward(self, x: torch.Tensor, share: torch.Tensor | None = None) -> torch.Tensor:
        """Returns the outputs `[B, *outputs]` for `x [B, *shape]`, in training mode.

        Of several rows they are `[R, B, K]` for `x [R, B, ...]` (images channels last); `share [R, B]` is then the
        weight of an example in the mean over its batch, 0 where there is none.
        """
        if share is not None:
            for layer in self.share_readers:
                layer.share = share
        for step in self.forward_steps:
            x = step(x)
        return x

    def backward(self, grad: torch.Tensor) -> None:
        """Writes the gradients of the entries, given those at the outputs, `[B, *outputs]` or `[R, B, K]`."""
        for step in self.backward_steps:
            grad = step(grad)

    def release(self) -> None:
        """Lets go of all tensors of the last passes; until the next ones no layer needs them."""
        for layer in self.layers:
            layer.release()
