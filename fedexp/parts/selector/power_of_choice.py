"""Power-of-choice (Cho, Wang & Joshi 2020, arXiv 2010.01243): the highest losses among some candidates.

d candidates are drawn one after another, without replacement, in proportion to their examples; the M of them with the
highest loss take part. `losses=current` evaluates the global model on the candidates' data (the paper's pow-d);
`losses=last_seen` uses the loss that each client last reported, infinite at first (rpow-d). Deviation: the paper's
rpow-d averages the losses of a client's last local steps; here it is the running loss of the first local epoch. A loss
that is not finite counts as the lowest.
"""

from typing import Annotated, Literal

import numpy as np
import torch

from fedexp.parts import ConfigError, Context, Memory, Plan, Range, Selector, Uploads
from fedexp.parts.selector.ranking import exclude_busy, highest, weighted_draw


class PowerOfChoice(Selector):
    """`count` of `candidates` clients (null: twice as many) a round; with `last_seen` remembers `loss [N]`."""

    reveals = "the losses of clients"
    needs_one_model = "compares the clients' losses under one global model"
    needs_all_rows = False

    count: Annotated[int, Range(1)]
    candidates: Annotated[int, Range(1)] | None = None
    losses: Literal["current", "last_seen"] = "current"

    @property
    def size_keys(self) -> tuple[str, ...]:
        return ("count",) if self.candidates is None else ()  # else their ratio says how many are looked at

    def check(self) -> None:
        if self.candidates is not None and self.candidates < self.count:
            raise ConfigError(
                f"PowerOfChoice.candidates must be at least count={self.count}, got {self.candidates}; with fewer "
                "there is no choice"
            )

    def choose(self, memory: Memory, ctx: Context) -> tuple[Plan, Memory]:
        count = self.choice_size(self.count, ctx)
        most = -(-count * (self.candidates or 2 * self.count) // self.count)  # the same share of the candidates
        with np.errstate(divide="ignore"):
            log_size = exclude_busy(np.log(ctx.sizes), ctx.fleet.busy)
        candidates = weighted_draw(log_size, most, ctx.rng("selector"))
        if self.losses == "current":
            losses = np.nan_to_num(ctx.losses(candidates), nan=-np.inf, posinf=-np.inf)
        else:
            losses = self._last_losses(memory, ctx)[candidates]
        return ctx.plan(candidates[highest(losses, count)]), memory

    def observe(self, uploads: Uploads, memory: Memory, ctx: Context) -> Memory:
        if self.losses == "current":
            return memory
        clients, losses = uploads.where(uploads.owner >= 0), self._last_losses(memory, ctx).copy()
        losses[clients.owner] = np.nan_to_num(clients.loss_before, nan=-np.inf, posinf=-np.inf)
        return {**memory, "loss": torch.from_numpy(losses)}

    def _last_losses(self, memory: Memory, ctx: Context) -> np.ndarray:
        return memory["loss"].numpy() if "loss" in memory else np.full(ctx.clients, np.inf)
