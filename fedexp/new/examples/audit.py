"""How far the promised privacy is tested: write here what is planted before the first round, and what is told of it.

As it stands, copies of examples with a wrong label each, half of which are trained on: how much lower is their loss?
"""

from typing import Annotated

import numpy as np
import torch

from fedexp.parts import Audit, Canaries, Columns, Context, Memory, Range, Split


class OwnAudit(Audit):
    """`count` canaries, and the column `audit.gap`: the mean loss of those outside less that of those inside."""

    count: Annotated[int, Range(2)] = 100

    def plant(self, train: Split, clients: np.ndarray, classes: int, rng: np.random.Generator) -> Canaries:
        source = torch.from_numpy(rng.integers(len(train.y), size=self.count))
        wrong = (train.y[source] + 1) % classes
        index, owner = len(train.y) + np.arange(self.count), np.sort(rng.choice(clients, self.count))
        return Canaries(index, train.x[source], wrong, owner, included=rng.permutation(self.count) % 2 == 0)

    def empty_columns(self) -> Columns:
        return {"gap": None}

    def report(self, memory: Memory, ctx: Context) -> Columns:
        planted = ctx.audit.canaries
        loss = ctx.audit.example_losses(ctx.models[0], planted.index)
        return {"gap": float(loss[~planted.included].mean() - loss[planted.included].mean())}
