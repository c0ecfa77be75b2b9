"""Active federated learning (Goetz et al. 2019, arXiv 1909.12641): clients with high valuations take part more often.

The floor(alpha1 N) lowest valuations are left out; of the rest floor((1 - alpha3) M) clients are drawn one after
another, without replacement, with p_k ~ exp(alpha2 v_k); the others come uniformly from all that are not drawn yet.
v_k = l_k / sqrt(n_k), with l_k the client's loss: its mean (the selection thesis' text, which prefers small clients) or
its sum (the paper: v_k = sqrt(n_k) times the mean loss, which prefers large ones).

Decisions and deviations: alpha2 multiplies (an inverse temperature). The losses are those of the received model, as
the formula says; `last_epoch` takes the running loss of the last local epoch, as the thesis' text does. `pick=highest`
draws nothing and takes the highest p, as the thesis' code does (ties: smallest ids). In the first round the initial
model is evaluated on all clients; later only participants' losses are updated. A loss that is not finite is ignored:
the valuation stays; a client that never had a finite loss is left out first. Who is away in the first round is asked
for its loss in the first one in which it is there.
"""

from typing import Annotated, Literal

import numpy as np
import torch

from fedexp.parts import Context, Fraction, Memory, Plan, Range, Selector, Uploads
from fedexp.parts.selector.ranking import highest, lowest, weighted_draw


def draw_clients(
    valuation: np.ndarray,
    count: int,
    alphas: tuple[float, float, float],
    rng: np.random.Generator,
    pick: str = "drawn",
    busy: np.ndarray | None = None,
) -> np.ndarray:
    """Draws up to `count` clients, ascending, none of them `busy [b]`.

    `valuation` is [N], NaN or -inf where it is unknown.
    """
    clients, (alpha1, alpha2, alpha3) = len(valuation), alphas
    busy = np.zeros(0, np.int64) if busy is None else busy
    count = min(count, clients - len(busy))
    filled = np.where(np.isnan(valuation), -np.inf, valuation)
    log_weight = alpha2 * np.where(np.isinf(filled), 0.0, filled) + np.where(np.isinf(filled), -np.inf, 0.0)
    log_weight[lowest(filled, int(alpha1 * clients + 1e-9))] = -np.inf
    log_weight[busy] = -np.inf
    greedy_count = int((1 - alpha3) * count + 1e-9)
    if pick == "highest":
        by_valuation = highest(log_weight, min(greedy_count, int((log_weight > -np.inf).sum())))
    else:
        by_valuation = weighted_draw(log_weight, greedy_count, rng)
    remaining = np.setdiff1d(np.arange(clients), np.concatenate([by_valuation, busy]), assume_unique=True)
    uniformly = rng.choice(remaining, count - len(by_valuation), replace=False)
    return np.sort(np.concatenate([by_valuation, uniformly]))


class AFL(Selector):
    """`count` clients a round; remembers `valuation [N]`."""

    reveals = "the losses of clients"
    needs_one_model = "compares the clients' losses under one global model"
    needs_all_rows = False

    count: Annotated[int, Range(1)]
    alpha1: Annotated[float, Fraction] = 0.75
    alpha2: Annotated[float, Range(0)] = 0.01
    alpha3: Annotated[float, Fraction] = 0.1
    loss: Literal["mean", "sum"] = "mean"
    valuation_at: Literal["received_model", "last_epoch"] = "received_model"
    pick: Literal["drawn", "highest"] = "drawn"

    @property
    def size_keys(self) -> tuple[str, ...]:
        return ("count",)

    @property
    def asks_participants(self) -> bool:
        return self.valuation_at == "received_model"

    def choose(self, memory: Memory, ctx: Context) -> tuple[Plan, Memory]:
        memory = self._ask_once(memory, ctx)
        alphas = (self.alpha1, self.alpha2, self.alpha3)
        valuation, count = memory["valuation"].numpy(), self.choice_size(self.count, ctx)
        owner = draw_clients(valuation, count, alphas, ctx.rng("selector"), self.pick, ctx.fleet.busy)
        return ctx.plan(owner), memory

    def observe(self, uploads: Uploads, memory: Memory, ctx: Context) -> Memory:
        clients = uploads.where(uploads.owner >= 0)
        losses = ctx.losses(clients.owner) if self.asks_participants else clients.loss_after
        new_valuation = self._valuation(losses, clients.examples)
        finite = np.isfinite(new_valuation)
        valuation = memory["valuation"].clone()
        valuation[clients.owner[finite]] = torch.from_numpy(new_valuation[finite])
        return {**memory, "valuation": valuation}

    def _ask_once(self, memory: Memory, ctx: Context) -> Memory:
        """The memory after those who were never asked for their loss and can be are; `unknown [m]` are then left."""
        unknown = memory["unknown"].numpy() if "unknown" in memory else np.arange(0 if memory else ctx.clients)
        reached = np.setdiff1d(unknown, ctx.fleet.busy, assume_unique=True)
        valuation = memory["valuation"].numpy().copy() if memory else np.full(ctx.clients, np.nan)
        if len(reached):
            valuation[reached] = self._valuation(ctx.losses(reached), ctx.sizes[reached])
        unknown = np.setdiff1d(unknown, reached, assume_unique=True)
        later = {"unknown": torch.from_numpy(unknown)} if len(unknown) else {}
        return {name: value for name, value in memory.items() if name != "unknown"} | {
            "valuation": torch.from_numpy(valuation),
            **later,
        }

    def _valuation(self, losses: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        root = np.sqrt(np.maximum(sizes, 1))
        valuation = losses / root if self.loss == "mean" else losses * root
        return np.where(np.isfinite(valuation), valuation, np.nan)
