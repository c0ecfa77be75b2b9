"""Secure aggregation: clients send additive secret shares to partners, which open only the sums.

Partners are honest but curious: any P - 1 of them together see uniform noise, all P together see everything. A mean
over few clients reveals much about each (over one: everything), which sharing cannot prevent. If fewer than `least`
clients contribute to a model, as in a small cluster, nothing is shared: the server sees their rows and takes the plain
mean, and the column `plain` counts it (`mb_up` counts shares all the same). It also counts a sum that is of fewer than
`least` because other clients vanished while they sent. The result is the weighted mean of
`aggregator=fedavg` to half a step of 2^-fractional_bits; `fedexp.parts.aggregator.secret_sharing` has the arithmetic
and the proof. The server's own row (`selector=hybridfl`) is shared like a client's.

A client that vanishes has sent to some partners and not to others. Partners tell each other which clients they heard,
and add up only those that all of them heard. All traffic is counted: to each partner 8 bytes for each entry and for the
weight (for a vanished client, too), and between partners their sums and lists, at 8 bytes a number.
"""

import logging
from typing import Annotated

import numpy as np

from fedexp.parts import SERVER, Aggregator, Context, Memory, Range, RunError, Uploads, Weights
from fedexp.parts.aggregator.fedavg import weighted_mean
from fedexp.parts.aggregator.secret_sharing import max_summand, secure_mean

log = logging.getLogger(__name__)
BYTES = 8


class SecureMean(Aggregator):
    """Reports how many clients vanished, what the partners sent to each other, and how many means were plain."""

    hides_rows = True

    partners: Annotated[int, Range(2)] = 3
    fractional_bits: Annotated[int, Range(1, 52)] = 32
    dropout: Annotated[float, Range(0, 1, high_open=True)] = 0.0
    least: Annotated[int, Range(1)] = 1  # older runs have no such key

    @property
    def averages(self) -> bool:  # a client that vanishes takes its share of the noise along
        return self.dropout == 0

    def upload_bytes(self, entries: int) -> int:
        return BYTES * self.partners * (entries + 1)

    def combine(self, weights: Weights, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Weights, Memory]:
        weight = self.row_weights(uploads)
        if not weight.any():
            return weights, self.report_columns()
        if (weight > 0).sum() < self.least:
            row = weighted_mean(uploads.delta, self.shares(uploads))
            return Weights(weights.flat + row, weights.layout), self.report_columns(plain_means=1)
        weight = weight / uploads.importance[weight > 0].min()  # the server knows it; all weights get >= 1
        self.refuse_overflow(uploads, weight, ctx.round)
        delivered = self.delivery_mask(uploads.owner, ctx)
        complete = delivered.all(axis=0)
        lists = BYTES * int(delivered.sum())
        if not weight[complete].any():
            log.warning("round %d: no client reached every partner; the model stays as it is", ctx.round)
            return weights, self.report_columns(int((~complete).sum()), lists)
        row = secure_mean(uploads.delta, weight, delivered, self.fractional_bits).to(weights.flat.dtype)
        sums = BYTES * self.partners * (len(row) - len(ctx.traffic.private_columns) + 1)
        is_plain = (weight[complete] > 0).sum() < self.least
        columns = self.report_columns(int((~complete).sum()), lists + sums, int(is_plain))
        return Weights(weights.flat + row, weights.layout), columns

    def report_columns(self, vanished: int = 0, partner_bytes: int = 0, plain_means: int = 0) -> Memory:
        """The columns of one model's mean; the column `plain_means` exists only if `least` is above 1."""
        columns = {"vanished": vanished, "partner_bytes": partner_bytes}
        return {"columns": columns | ({"plain": plain_means} if self.least > 1 else {})}

    def delivery_mask(self, owner: np.ndarray, ctx: Context) -> np.ndarray:
        """Which partner gets a share from which client of `owner [C]`, bool [P, C]; dropouts reach only some."""
        delivered = np.ones((self.partners, len(owner)), dtype=bool)
        if self.dropout == 0:
            return delivered
        for position in np.flatnonzero(owner != SERVER):
            rng = ctx.rng("secure_mean", int(owner[position]))
            if rng.random() < self.dropout:
                delivered[:, position] = rng.permutation(self.partners) < rng.integers(1, self.partners)
        return delivered

    def refuse_overflow(self, uploads: Uploads, weight: np.ndarray, number: int) -> None:
        """Raises RunError if the sum of such uploads, with `weight [C]`, might leave the ring."""
        low, high = uploads.delta.amin(dim=1), uploads.delta.amax(dim=1)
        size = weight * np.maximum(high.double().cpu().numpy(), -low.double().cpu().numpy()).clip(min=1)
        bound, worst_row = max_summand(len(size), self.fractional_bits), int(size.argmax())
        if size[worst_row] > bound:
            raise RunError(
                f"round {number}: SecureMean needs weights and |weight * update| of at most {bound:.6g} (2^62 / "
                f"2^fractional_bits / {len(size)} clients), but those of client {uploads.owner[worst_row]} reach "
                f"{size[worst_row]:.6g}; lower aggregator.fractional_bits or clip the updates"
            )
