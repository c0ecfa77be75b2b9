"""The schedule of steps as tensors: which example each row sees at each step, which rows step, which are pulled.

On a GPU all steps of a round lie in one tensor, which is sent in one copy, and a captured graph of several steps finds
its place by a counter on the device. Legend: S steps, k steps of a graph, R rows, B batch.
"""

from typing import NamedTuple

import numpy as np
import torch

from fedexp.training.client.examples import Examples


class StepBatch(NamedTuple):
    """Several steps, or a single step without the first dimension.

    `examples [k, R, B]` are numbers, `share [k, R, B]` above 0 where there is one: its part of the mean, or True.
    `active [k, R, 1]` says which rows take the step, `pull_mask` which the rule pulls after it, `first_phase` which
    take it in their first phase. `steps_before` and `steps_after [k]` are the steps done before and after it.
    """

    examples: torch.Tensor
    share: torch.Tensor
    active: torch.Tensor
    pull_mask: torch.Tensor
    first_phase: torch.Tensor
    steps_before: torch.Tensor
    steps_after: torch.Tensor

    def at(self, step: int) -> "StepBatch":
        """Returns a single step."""
        return StepBatch(*(tensor[step] for tensor in self))


class StepArrays(NamedTuple):
    """The steps of the rows that train together, on the host.

    The numbers of their examples and a mask, `[S, R, B]`; which rows take the step, `[S, R]`; which are pulled after
    it, and which take it in their first phase, `[S, R, 1]`.
    """

    examples: np.ndarray
    mask: np.ndarray
    active_steps: np.ndarray
    pull_mask: np.ndarray
    first_phase: np.ndarray


def steps_on_host(arrays: StepArrays) -> StepBatch:
    """Returns all steps on the CPU, `[S, ...]`."""
    counter = torch.arange(len(arrays.examples) + 1.0)
    flags = arrays.active_steps[:, :, None], arrays.pull_mask, arrays.first_phase
    # not as booleans or float32: a scalar beside them would lose digits
    active, pulls, first = (torch.from_numpy(flag).to(counter.dtype) for flag in flags)
    examples, share = torch.from_numpy(arrays.examples), torch.from_numpy(arrays.mask)
    return StepBatch(examples, share, active, pulls, first, counter[:-1], counter[1:])


def pack_steps(arrays: StepArrays, steps: int) -> np.ndarray:
    """Packs steps into one int32 array `[steps, R, 2 B + 3]`, padded with idle steps up to `steps`.

    Behind the numbers of the examples stand their shares, who is active, who is pulled, and who is in the first phase,
    as the bits of floats.
    """
    index, mask, active_steps, *flags = arrays
    shares = mask / np.maximum(mask.sum(axis=2, keepdims=True), 1)
    floats = np.concatenate([shares, active_steps[:, :, None], *flags], axis=2, dtype=np.float32, casting="unsafe")
    array = np.concatenate([index.astype(np.int32), floats.view(np.int32)], axis=2)
    return np.pad(array, ((0, steps - len(array)), (0, 0), (0, 0)))


class StepSchedule:
    """All steps of a bucket on a GPU; every replay of a graph takes the next `steps_per_graph` of them."""

    def __init__(self, steps: int, rows: int, batch: int, steps_per_graph: int, examples: Examples) -> None:
        """Allocates memory for this many steps, rows and examples a batch."""
        device, self.batch, self.steps_per_graph = examples.x.device, batch, steps_per_graph
        self.packed_steps = torch.zeros((steps, rows, 2 * batch + 3), dtype=torch.int32, device=device)
        self.offsets = torch.arange(steps_per_graph, device=device)
        self.steps_done = torch.zeros(1, dtype=torch.int64, device=device)

    def load(self, steps: torch.Tensor) -> None:
        """Begins a round with these steps, packed as `[S, R, 2 B + 3]`."""
        self.packed_steps[: len(steps)].copy_(steps)
        self.steps_done.zero_()

    def next_steps(self) -> StepBatch:
        """Returns the next steps, `[k, ...]`; this runs inside the captured graph."""
        positions = self.steps_done + self.offsets
        block = self.packed_steps.index_select(0, positions)
        floats = block[..., self.batch :].view(torch.float32)
        share, active, pull_mask, first_phase = floats.split([self.batch, 1, 1, 1], dim=2)
        flags = active, pull_mask, first_phase
        return StepBatch(block[..., : self.batch].long(), share.contiguous(), *flags, positions, positions + 1.0)

    def advance(self) -> None:
        """Counts the steps as done; this runs inside the captured graph."""
        self.steps_done.add_(self.steps_per_graph)
