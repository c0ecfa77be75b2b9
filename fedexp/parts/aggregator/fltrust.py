"""FLTrust (Cao et al. 2021, arXiv 2012.13995): clients are trusted as far as they agree with the server.

In each round the server trains the model on its public data as a client would, which gives it an update d_0 of its own.
The trust in client k is max(0, cos(d_k, d_0)), its update is scaled to the length of d_0, and the step is the mean of
the scaled updates by trust. Where nobody is trusted, or the server's own update is zero or not finite, the model stays.
Lengths and cosines are those of trainable entries; buffers take the mean by trust. The paper's global rate is
`server_optimizer.lr`, here 1 with `server_optimizer=replace`.

If all updates are the server's own, the step is that. `trusted` is how many clients have any trust, `server_norm` the
length of d_0. Clients count alike, whatever they hold.
"""

from typing import ClassVar, Literal

import torch

from fedexp.parts import Aggregator, Columns, Context, Memory, Uploads, Weights, blocks, distances_to, mix_columns


def cosines_with(rows: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
    """The cosine of each of `rows [C, P]` with one `row [P]`, float64 [C]; 0 where one of the two is zero."""
    product = torch.zeros(len(rows), dtype=torch.float64, device=rows.device)
    for columns, block in blocks(rows):
        product += block.double() @ row[columns].double()
    norm = distances_to(rows) * distances_to(row[None])
    return torch.where(norm > 0, product / norm, 0.0)


class FLTrust(Aggregator):
    """The mean by trust of updates as long as the server's own."""

    needs_public = True
    needs_cohort = "compares each update with the server's own of the present model"
    idle_columns: ClassVar[Columns] = {"trusted": 0, "server_norm": None}
    weighting: Literal["uniform"] = "uniform"

    def combine(self, weights: Weights, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Weights, Memory]:
        if not self.row_weights(uploads).any():
            return weights, {"columns": self.idle_columns}
        parameters = weights.layout.parameters
        server_row = (ctx.public.train(weights.flat) - weights.flat)[:parameters]
        trainable, length = uploads.delta[:, :parameters], distances_to(server_row[None])[0]
        trust = cosines_with(trainable, server_row).clamp(min=0)
        columns = {"trusted": int((trust > 0).sum()), "server_norm": float(length) if length.isfinite() else None}
        if not columns["trusted"]:
            return weights, {"columns": columns}
        share = trust / trust.sum()
        scaled = share * length / distances_to(trainable).clamp(min=1e-300)
        step = mix_columns(scaled, share, uploads.delta, parameters)
        return Weights(weights.flat + step, weights.layout), {"columns": columns}
