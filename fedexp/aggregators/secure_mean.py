"""The mean without the rows: clients send additive secret shares to partners, who open nothing but the sums.

Partners are honest but curious: any P - 1 of them together see uniform noise, all P together see everything. That a
mean over few clients tells much of each (over one: all), is not for the shares to change. The result is the weighted
mean of `aggregator=fedavg` to half a step of 2^-fractional_bits; `fedexp.aggregators.secret_sharing` has the
arithmetic and the proof. A row of the server's own (`selector=hybridfl`) is shared out like a client's.

A client that vanishes has sent to some partners and not to others. Partners tell each other of whom they heard and add
up only those that all of them heard of. What crosses the network is counted: to each partner 8 bytes an entry and the
weight (a vanished client's upload in full), and between partners their sums and lists, at 8 bytes a number.
"""

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from fedexp.aggregators.secret_sharing import largest, secure_mean
from fedexp.roles import Aggregator
from fedexp.spec import Range, RunError
from fedexp.values import SERVER, Memory, Uploads, Weights

if TYPE_CHECKING:
    from fedexp.context import Context

log = logging.getLogger(__name__)
BYTES = 8


@dataclass(frozen=True, kw_only=True)
class SecureMean(Aggregator):
    """Reports how many clients vanished and what the partners sent to each other."""

    hides_rows = True

    partners: Annotated[int, Range(2)] = 3
    fractional_bits: Annotated[int, Range(1, 52)] = 32
    dropout: Annotated[float, Range(0, 1, high_open=True)] = 0.0

    @property
    def averages(self) -> bool:  # who vanishes takes a share of the noise along
        return self.dropout == 0

    def upload_bytes(self, entries: int) -> int:
        return BYTES * self.partners * (entries + 1)

    def combine(self, weights: Weights, uploads: Uploads, memory: Memory, ctx: "Context") -> tuple[Weights, Memory]:
        weight = self.counts(uploads)
        if not weight.any():
            return weights, {"columns": {"vanished": 0, "partner_bytes": 0}}
        weight = weight / uploads.importance[weight > 0].min()  # the server's own, so known; now all are at least 1
        self.refuse_overflow(uploads, weight, ctx.round)
        heard = self.heard(uploads.owner, ctx)
        complete = heard.all(axis=0)
        lists = BYTES * int(heard.sum())
        if not weight[complete].any():
            log.warning("round %d: no client reached every partner; the model stays as it is", ctx.round)
            return weights, {"columns": {"vanished": int((~complete).sum()), "partner_bytes": lists}}
        row = secure_mean(uploads.delta, weight, heard, self.fractional_bits).to(weights.flat.dtype)
        sums = BYTES * self.partners * (len(row) - len(ctx.unsent) + 1)
        columns = {"vanished": int((~complete).sum()), "partner_bytes": lists + sums}
        return Weights(weights.flat + row, weights.layout), {"columns": columns}

    def heard(self, owner: np.ndarray, ctx: "Context") -> np.ndarray:
        """Which partner hears of which client, bool [P, C]; who vanishes reaches one of them at least, but not all."""
        heard = np.ones((self.partners, len(owner)), dtype=bool)
        if self.dropout == 0:
            return heard
        for place in np.flatnonzero(owner != SERVER):
            rng = ctx.rng("secure_mean", int(owner[place]))
            if rng.random() < self.dropout:
                heard[:, place] = rng.permutation(self.partners) < rng.integers(1, self.partners)
        return heard

    def refuse_overflow(self, uploads: Uploads, weight: np.ndarray, number: int) -> None:
        """Raises RunError where the sum of such uploads might leave the ring."""
        low, high = uploads.delta.aminmax(dim=1)
        size = weight * np.maximum(high.double().cpu().numpy(), -low.double().cpu().numpy()).clip(min=1)
        bound, place = largest(len(size), self.fractional_bits), int(size.argmax())
        if size[place] > bound:
            raise RunError(
                f"round {number}: SecureMean needs weights and |weight * update| of at most {bound:.6g} (2^62 / "
                f"2^fractional_bits / {len(size)} clients), but those of client {uploads.owner[place]} reach "
                f"{size[place]:.6g}; lower aggregator.fractional_bits or clip the updates"
            )
