"""Augmentation in training: draws are hashes of the client, the round, the step and the place in the batch."""

from collections.abc import Callable

import torch

from fedexp.training.client.examples import Examples
from fedexp.training.client.keyed_random import split_seed, step_keys, uniform


class BatchAugmenter:
    """Changes each batch of the rows that train together, or of a single row, as the examples' augmentation says."""

    def __init__(self, examples: Examples, rows: int | None = None) -> None:
        self.examples, self.augment = examples, examples.augment
        shape = (2,) if rows is None else (2, rows)
        self.seeds = torch.zeros(shape, dtype=torch.int32, device=examples.x.device)

    def begin(self, seeds: Callable[[], list[int]]) -> None:
        """Begins a round of rows whose seeds, `n` numbers, `seeds` returns; it is called where they are needed."""
        if self.augment.draws:
            self.seeds.copy_(split_seed(seeds()).view(self.seeds.shape))

    def __call__(self, batch: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        """The batch `[B, *shape]` or `[R, B, *shape]` to be trained on in a step (a scalar)."""
        if not self.augment.draws:
            return batch
        examples = batch.shape[: batch.dim() - self.examples.x.dim() + 1]
        drawn = uniform(step_keys(self.seeds, step), torch.Size((*examples, self.augment.draws)))
        return self.augment.batch(batch, drawn, self.examples.mean, self.examples.std)
