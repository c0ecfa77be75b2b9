"""MIFA (Gu et al. 2021, arXiv 2106.04159): the mean of the last updates of all clients, whoever took part.

w <- w + 1/N sum_i G_i, where G_i is what client i last sent, the new ones in place. If everybody takes part in each
round, it is FedAvg with equal weights. Deviation: the paper lets all clients send once before the first step; here a
client that was never heard of counts as zero. Where the clients' rate falls, the authors' program (hmgxr128/MIFA_code)
rescales what it remembers to the present rate; here an update stays as it was sent.
"""

from typing import Literal

from fedexp.parts import SERVER, Aggregator, Context, Memory, Uploads, Weights, load_updates, mean_update


class MIFA(Aggregator):
    """Remembers a row of every client, and averages them."""

    keeps_rows = True

    weighting: Literal["uniform"] = "uniform"

    def combine(self, weights: Weights, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Weights, Memory]:
        uploads = uploads.where(uploads.owner != SERVER)
        updates = load_updates(memory, uploads).with_rows(uploads.owner, uploads.delta)
        columns = {"heard": len(updates.owner)}
        if not len(updates.owner):
            return weights, updates.save() | {"columns": columns}
        return Weights(weights.flat + mean_update(updates, ctx), weights.layout), updates.save() | {"columns": columns}
