"""Parts of users that do not keep their contracts, each by one mistake."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedexp.parts import (
    Aggregator,
    Arrivals,
    Attack,
    Availability,
    Clustering,
    Context,
    Data,
    Dataset,
    Facts,
    Fleet,
    LocalRule,
    Memory,
    Pacing,
    Plan,
    Selector,
    ServerOptimizer,
    Split,
    Stop,
    Timeline,
    Uploads,
    Weights,
)

Change = Callable[..., Any]
MISTAKE: dict[str, Change] = {}  # what a part makes of its right answer, by the name of the method


def changed(method: str, answer: Any, *given: Any) -> Any:
    return MISTAKE[method](answer, *given) if method in MISTAKE else answer


class Choosing(Selector):
    def choose(self, memory: Memory, ctx: Context) -> tuple[Plan, Memory]:
        return changed("choose", (ctx.plan(np.arange(3)), memory), ctx)

    def observe(self, uploads: Uploads, memory: Memory, ctx: Context) -> Memory:
        return changed("observe", memory)


class Reducing(Aggregator):
    def reduce(self, delta: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
        return changed("reduce", delta.mean(dim=0), delta)


class Combining(Aggregator):
    def combine(self, weights: Weights, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Weights, Memory]:
        return changed("combine", (replace(weights, flat=weights.flat + uploads.delta.mean(dim=0)), memory), weights)


class Stepping(ServerOptimizer):
    def step(self, weights: Weights, proposal: Weights, memory: Memory) -> tuple[Weights, Memory]:
        return changed("step", (proposal, memory))


class Tampering(Attack):
    def tamper(self, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Uploads, Memory]:
        return changed("tamper", (uploads, memory), uploads)


class Delivering(Fleet):
    def deliver(self, uploads: Uploads, plan: Plan, memory: Memory, ctx: Context) -> tuple[Uploads, float, Memory]:
        return changed("deliver", (uploads, 1.0, memory))


class Assigning(Clustering):
    def assign(self, models: Any, plan: Plan, memory: Memory, ctx: Context) -> Any:
        return changed("assign", (models, plan, np.zeros(len(plan.owner), np.int64), memory))

    def regroup(self, models: Any, uploads: Uploads, memory: Memory, ctx: Context) -> Any:
        return changed("regroup", (models, memory))


class Judging(Stop):
    def judge(self, row: Any, memory: Memory) -> tuple[str | None, Memory]:
        return changed("judge", (None, memory))


class Stepped(LocalRule):
    def begin(self, received: torch.Tensor, owner: np.ndarray, memory: Memory, ctx: Context) -> Any:
        return changed("begin", (received, received[:, : ctx.layout.parameters]))

    def update(self, w: torch.Tensor, grad: torch.Tensor, slots: Any, step: Any, active: Any) -> None:
        changed("update", None)
        w.sub_(grad * (self.lr if active is None else self.lr * active))

    def finish(self, trained: Any, memory: Memory, ctx: Context) -> tuple[torch.Tensor, Memory]:
        return changed("finish", (trained.delta(), memory))


class Beginning(Pacing):
    def due(self, plan: Plan, model: Weights, memory: Memory, ctx: Context) -> tuple[Arrivals, Memory]:
        return changed("due", super().due(plan, model, memory, ctx), ctx)


class Coming(Availability):
    """Every client comes at an even second and goes at the next odd one, client 0 the other way round."""

    changes = True

    first_second = 0

    def timeline(self, clients: int, seed: int) -> Timeline:
        def timeline(owner: np.ndarray, now_s: float) -> tuple[np.ndarray, np.ndarray]:
            present = (now_s // 1 % 2 == self.first_second) ^ (owner == 0)
            return changed("timeline", (present, np.full(len(owner), now_s // 1 + 1)), owner)

        return timeline


class Made(Dataset):
    """Twelve examples of two classes to train on, four to test on."""

    def facts(self, directory: Path) -> Facts:
        return changed("facts", Facts((3,), 2, 12))

    def load(self, directory: Path, seed: int) -> Data:
        train, test = (Split(torch.rand(count, 3), torch.arange(count) % 2) for count in (12, 4))
        return changed("load", Data(train, test, ("a", "b")))


class Idle(Selector):
    """Defines nothing."""


class IdleAggregator(Aggregator):
    """Defines nothing."""


class Torn(Selector):
    """Cannot be made."""

    def check(self) -> None:
        raise KeyError("torn")

    def choose(self, memory: Memory, ctx: Context) -> tuple[Plan, Memory]:
        return ctx.plan(np.arange(3)), memory
