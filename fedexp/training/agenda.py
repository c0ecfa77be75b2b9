"""The schedule of steps as tensors: which example each row sees at each step, which rows step, which are pulled.

On a GPU all steps of a round lie in one tensor, which is sent in one copy, and a captured graph of several steps finds
its place by a counter on the device. Legend: S steps, k steps of a graph, R rows, B batch.
"""

from typing import NamedTuple

import numpy as np
import torch

from fedexp.training.examples import Examples


class Turns(NamedTuple):
    """Several steps, or a single step without the first dimension.

    `examples [k, R, B]` are numbers, `share [k, R, B]` above 0 where there is one: its part of the mean, or True.
    `active [k, R, 1]` says which rows take the step and `due` which the rule pulls after it. `before` and
    `number [k]` are the steps done before and after it.
    """

    examples: torch.Tensor
    share: torch.Tensor
    active: torch.Tensor
    due: torch.Tensor
    before: torch.Tensor
    number: torch.Tensor

    def at(self, step: int) -> "Turns":
        """Returns a single step."""
        return Turns(*(each[step] for each in self))


def turns_on_host(index: np.ndarray, mask: np.ndarray, taking: np.ndarray, due: np.ndarray) -> Turns:
    """Returns all steps on the CPU for `index`, `mask [S, R, B]`, `active_steps [S, R]`, `pull_mask [S, R, 1]`."""
    examples, there, active, pulled = map(torch.from_numpy, (index, mask, taking[:, :, None], due))
    counter = torch.arange(len(index) + 1.0)
    active, pulled = active.to(counter.dtype), pulled.to(counter.dtype)  # else a scalar beside them would lose digits
    return Turns(examples, there, active, pulled, counter[:-1], counter[1:])


def packed(index: np.ndarray, mask: np.ndarray, taking: np.ndarray, due: np.ndarray, steps: int) -> np.ndarray:
    """Packs the same steps into one int32 array `[steps, R, 2 B + 2]`, padded with idle steps up to `steps`.

    Behind the numbers of the examples stand their shares, who is active and who is due, as the bits of floats.
    """
    shares = mask / np.maximum(mask.sum(axis=2, keepdims=True), 1)
    floats = np.concatenate([shares, taking[:, :, None], due], axis=2, dtype=np.float32, casting="unsafe")
    whole = np.concatenate([index.astype(np.int32), floats.view(np.int32)], axis=2)
    return np.pad(whole, ((0, steps - len(whole)), (0, 0), (0, 0)))


class Agenda:
    """All steps of a bucket on a GPU; every replay of a graph takes the next `steps_per_graph` of them."""

    def __init__(self, steps: int, rows: int, batch: int, at_once: int, examples: Examples) -> None:
        """Allocates memory for this many steps, rows and examples a batch."""
        device, self.batch, self.at_once = examples.x.device, batch, at_once
        self.packed = torch.zeros((steps, rows, 2 * batch + 2), dtype=torch.int32, device=device)
        self.ahead = torch.arange(at_once, device=device)
        self.done = torch.zeros(1, dtype=torch.int64, device=device)

    def load(self, steps: torch.Tensor) -> None:
        """Begins a round with these steps, packed as `[S, R, 2 B + 2]`."""
        self.packed[: len(steps)].copy_(steps)
        self.done.zero_()

    def turns(self) -> Turns:
        """Returns the next steps, `[k, ...]`; this runs inside the captured graph."""
        place = self.done + self.ahead
        now = self.packed.index_select(0, place)
        floats = now[..., self.batch :].view(torch.float32)
        share, active, due = floats.split([self.batch, 1, 1], dim=2)
        return Turns(now[..., : self.batch].long(), share.contiguous(), active, due, place, place + 1.0)

    def advance(self) -> None:
        """Counts the steps as done; this runs inside the captured graph."""
        self.done.add_(self.at_once)
