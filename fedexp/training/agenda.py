"""The steps of rows that train together, as tensors: who sees which example when, who moves, who is pulled.

On a GPU all steps of a round lie in one tensor, which is sent in one copy, and a captured graph of several steps finds
its place by a counter on the device. Legend: S steps, k steps of a graph, R rows, B batch.
"""

from typing import NamedTuple

import numpy as np
import torch

from fedexp.training.examples import Examples


class Turns(NamedTuple):
    """Several steps, or one of them: then without the first dimension.

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
        """One of the steps."""
        return Turns(*(each[step] for each in self))


def turns_on_host(index: np.ndarray, mask: np.ndarray, taking: np.ndarray, due: np.ndarray) -> Turns:
    """All steps at once, given `index`, `mask [S, R, B]`, `taking [S, R]` and `due [S, R, 1]`."""
    examples, there, active, pulled = map(torch.from_numpy, (index, mask, taking[:, :, None], due))
    counter = torch.arange(len(index) + 1.0)
    active, pulled = active.to(counter.dtype), pulled.to(counter.dtype)  # else a scalar beside them would lose digits
    return Turns(examples, there, active, pulled, counter[:-1], counter[1:])


def packed(index: np.ndarray, mask: np.ndarray, taking: np.ndarray, due: np.ndarray, steps: int) -> np.ndarray:
    """The same as one int32 array `[steps, R, 2 B + 2]`, with as many idle steps at the end as `steps` asks for.

    Behind the numbers of the examples stand their shares, who is active and who is due, as the bits of floats.
    """
    shares = mask / np.maximum(mask.sum(axis=2, keepdims=True), 1)
    floats = np.concatenate([shares, taking[:, :, None], due], axis=2, dtype=np.float32, casting="unsafe")
    whole = np.concatenate([index.astype(np.int32), floats.view(np.int32)], axis=2)
    return np.pad(whole, ((0, steps - len(whole)), (0, 0), (0, 0)))


class Agenda:
    """All steps of a bucket on a GPU, of which every replay of a graph takes the next `at_once`."""

    def __init__(self, steps: int, rows: int, batch: int, at_once: int, examples: Examples) -> None:
        """Room for so many steps, rows and examples."""
        device, self.batch, self.at_once = examples.x.device, batch, at_once
        self.packed = torch.zeros((steps, rows, 2 * batch + 2), dtype=torch.int32, device=device)
        self.ahead = torch.arange(at_once, device=device)
        self.done = torch.zeros(1, dtype=torch.int64, device=device)

    def load(self, steps: torch.Tensor) -> None:
        """Begins a round with these steps, packed `[S, R, 2 B + 2]`."""
        self.packed[: len(steps)].copy_(steps)
        self.done.zero_()

    def turns(self) -> Turns:
        """The next steps, `[k, ...]`; part of the graph."""
        place = self.done + self.ahead
        now = self.packed.index_select(0, place)
        floats = now[..., self.batch :].view(torch.float32)
        share, active, due = floats.split([self.batch, 1, 1], dim=2)
        return Turns(now[..., : self.batch].long(), share.contiguous(), active, due, place, place + 1.0)

    def advance(self) -> None:
        """Counts the steps as done; part of the graph."""
        self.done.add_(self.at_once)
