"""FedVARP (Jhunjhunwala et al. 2022, arXiv 2207.14130): the last updates of all clients as control variates.

w <- w + 1/C sum over those that came of (d_i - h_i) + 1/N sum over all of h_j, and then h_i <- d_i, where h_j is what
client j last sent, zero at first; where a selector gives some clients more importance, it weighs the first mean. If
everybody takes part in each round, the control variates cancel. CA2FL (Wang et al. 2024, ICLR) is the same step on a
buffer of stale updates.
"""

from typing import Literal

from fedexp.parts import SERVER, Aggregator, Context, Memory, Uploads, Weights, load_updates, mean_update, mix_rows


class FedVARP(Aggregator):
    """Remembers a row of every client, and corrects the mean by them."""

    keeps_rows = True

    weighting: Literal["uniform"] = "uniform"

    def combine(self, weights: Weights, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Weights, Memory]:
        uploads = uploads.where(uploads.owner != SERVER)
        before = load_updates(memory, uploads)
        after = before.with_rows(uploads.owner, uploads.delta)
        columns = {"heard": len(after.owner)}
        if not len(uploads.owner):
            return weights, after.save() | {"columns": columns}
        change = uploads.delta - before.rows_of(uploads.owner)
        step = mix_rows(self.shares(uploads)[None], change)[0]
        if len(before.owner):
            step = step + mean_update(before, ctx)
        return Weights(weights.flat + step, weights.layout), after.save() | {"columns": columns}
