"""Oort (Lai et al. 2021, OSDI, arXiv 2010.06081, algorithm 1): utility of a client's data times its speed.

Statistical utility of a client that took part: n_k sqrt(mean squared loss), capped at its `cap` quantile, plus
sqrt(0.1 ln R / L_k) for a last participation in round L_k; times (T / t_k)^alpha if its round takes t_k > T seconds.
Most places go to clients drawn in proportion to utility among those above `cutoff` times the last place's utility. A
share of the places, which starts at `exploration` and decays, goes to clients never seen, in proportion to their speed.

Deviations: the losses are the received model's on the client's data, not those of its training steps. T is a quantile
of the known durations, as in the authors' code; the pacer raises it by `pacer_step` when the utility of the last
`window` rounds is below that of the `window` before, and then waits for a new window. Frequent participants are not
excluded. Of more than 50,000 unseen clients, a uniform draw of so many is considered. Without a simulated fleet there
are no durations and speeds. Legend: N clients, n of them.
"""

from typing import Annotated

import numpy as np
import torch

from fedexp.parts import Context, Fraction, Memory, Plan, Positive, Range, Selector, Uploads
from fedexp.parts.selector.ranking import weighted_draw

MAX_UNEXPLORED = 50_000  # unseen clients whose speed is computed in a round


def utilities(statistical: np.ndarray, last: np.ndarray, number: int, slowdown: np.ndarray, cap: float) -> np.ndarray:
    """Utilities `[n]` in round `number`: `statistical [n]`, round `last [n]` seen, `slowdown [n]` is (T / t)^alpha."""
    capped = np.minimum(statistical, np.quantile(statistical, cap))
    return (capped + np.sqrt(0.1 * np.log(number) / last)) * slowdown


def exploit(utility: np.ndarray, count: int, cutoff: float, rng: np.random.Generator) -> np.ndarray:
    """Positions drawn in proportion to `utility [n]`, among those of at least `cutoff` times the count-th best."""
    if count >= len(utility) or count == 0:
        return np.arange(min(count, len(utility)))
    edge = cutoff * np.partition(utility, -count)[-count]
    with np.errstate(divide="ignore"):
        return weighted_draw(np.where(utility >= edge, np.log(utility), -np.inf), count, rng)


class Oort(Selector):
    """`count` clients a round; remembers `statistical`, `last` and `duration` [N], the pacer's history and quantile."""

    reveals = "the losses of clients"
    needs_one_model = "compares the clients' losses under one global model"
    needs_all_rows = False
    asks_participants = True

    count: Annotated[int, Range(1)]
    exploration: Annotated[float, Fraction] = 0.9
    exploration_decay: Annotated[float, Fraction] = 0.98
    exploration_least: Annotated[float, Fraction] = 0.2
    alpha: Annotated[float, Range(0)] = 2.0
    cap: Annotated[float, Fraction] = 0.95
    cutoff: Annotated[float, Fraction] = 0.95
    preferred: Annotated[float, Fraction] = 0.3
    pacer_step: Annotated[float, Fraction] = 0.05
    window: Annotated[int, Positive] = 20

    @property
    def size_keys(self) -> tuple[str, ...]:
        return ("count",)

    def choose(self, memory: Memory, ctx: Context) -> tuple[Plan, Memory]:
        memory = memory or self._initial_memory(ctx)
        rng = ctx.rng("selector")
        count = min(self.choice_size(self.count, ctx), ctx.clients - len(ctx.fleet.busy))
        has_taken_part, free = memory["last"].numpy() > 0, np.ones(ctx.clients, dtype=bool)
        free[ctx.fleet.busy] = False
        explored, unexplored = np.flatnonzero(has_taken_part & free), np.flatnonzero(~has_taken_part & free)
        share = max(self.exploration * self.exploration_decay ** (ctx.round - 1), self.exploration_least)
        exploring = min(len(unexplored), max(int(share * count + 0.5), count - len(explored)))
        chosen = explored[exploit(self._utility(memory, explored, ctx), count - exploring, self.cutoff, rng)]
        if len(unexplored) > MAX_UNEXPLORED:
            unexplored = np.sort(rng.choice(unexplored, MAX_UNEXPLORED, replace=False, shuffle=False))
        chosen = np.concatenate([chosen, unexplored[weighted_draw(self._log_speed(unexplored, ctx), exploring, rng)]])
        remaining = (
            np.setdiff1d(np.flatnonzero(free), chosen, assume_unique=True) if len(chosen) < count else chosen[:0]
        )
        filling = rng.choice(remaining, count - len(chosen), replace=False)
        return ctx.plan(np.sort(np.concatenate([chosen, filling]))), memory

    def observe(self, uploads: Uploads, memory: Memory, ctx: Context) -> Memory:
        clients = uploads.where(uploads.owner >= 0)
        updated = {name: memory[name].clone() for name in ("statistical", "last", "duration")}
        utility = clients.examples * np.sqrt(ctx.losses(clients.owner, power=2))
        finite = np.isfinite(utility)
        updated["statistical"][clients.owner[finite]] = torch.from_numpy(utility[finite])
        updated["last"][clients.owner] = ctx.round
        if ctx.fleet.simulates:
            now = ctx.fleet.resources(clients.owner)
            updated["duration"][clients.owner] = torch.from_numpy(now.update_s + now.upload_s)
        return {**memory, **updated, **self._update_pacer(memory, float(utility[finite].sum()))}

    def _update_pacer(self, memory: Memory, gained: float) -> Memory:
        """The pacer's memory: the history of utilities, at most two windows long, and the quantile of durations."""
        history, preferred = (*memory["history"], gained)[-2 * self.window :], memory["preferred"]
        if len(history) == 2 * self.window and sum(history[: self.window]) > sum(history[self.window :]):
            history, preferred = history[self.window :], min(1.0, preferred + self.pacer_step)
        return {"history": history, "preferred": preferred}

    def _initial_memory(self, ctx: Context) -> Memory:
        zeros = torch.zeros(ctx.clients, dtype=torch.float64)
        last = torch.zeros(ctx.clients, dtype=torch.int64)
        return {"statistical": zeros, "last": last, "duration": zeros, "history": (), "preferred": self.preferred}

    def _utility(self, memory: Memory, explored: np.ndarray, ctx: Context) -> np.ndarray:
        if not len(explored):
            return np.zeros(0)
        slowdown = np.ones(len(explored))
        if ctx.fleet.simulates:
            duration = memory["duration"].numpy()[explored]
            slowdown = np.minimum(1.0, np.quantile(duration, memory["preferred"]) / duration) ** self.alpha
        statistical, last = (memory[name].numpy()[explored] for name in ("statistical", "last"))
        return utilities(statistical, last, ctx.round, slowdown, self.cap)

    def _log_speed(self, clients: np.ndarray, ctx: Context) -> np.ndarray:
        if not ctx.fleet.simulates:
            return np.zeros(len(clients))
        now = ctx.fleet.resources(clients)
        return -np.log(now.update_s + now.upload_s)
