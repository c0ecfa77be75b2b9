"""A context whose answers a test writes down, so that a selector's rounds can be followed with a pencil."""

from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import torch

from fedexp.core.client_resources import Resources
from fedexp.core.random_streams import stream
from fedexp.core.values import Layout, Memory, Plan, Uploads, Weights
from fedexp.parts.context import Context
from fedexp.parts.selector.contract import Selector


@dataclass(frozen=True)
class Stage:
    """A federation of N clients with `sizes [N]`; everything else that a test needs it sets."""

    sizes: np.ndarray
    round: int = 1
    loss: np.ndarray | None = None  # [N], of the received model
    utility: Any = None  # of a coalition (a set of client numbers): what round_values sees
    machines: Resources | None = None  # [N]
    counts: np.ndarray | None = None  # [N, K]
    permits: np.ndarray | None = None  # [N], the uniform draws of permission
    simulates: bool = False
    example_bytes: int = 92
    seed: int = 0
    owners: list[int] = field(default_factory=list)
    busy: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    capacity: int | None = None

    @property
    def clients(self) -> int:
        return len(self.sizes)

    def rng(self, *name: Any) -> np.random.Generator:
        return stream(self.seed, self.round, *name)

    def run_rng(self, *name: Any) -> np.random.Generator:
        return stream(self.seed, *name)

    def losses(self, owner: np.ndarray, power: int = 1) -> np.ndarray:
        assert self.loss is not None
        return self.loss[owner] ** power

    def resources(self, owner: np.ndarray) -> Resources:
        assert self.machines is not None
        return self.machines.where(owner)

    def class_counts(self, owner: np.ndarray) -> np.ndarray:
        assert self.counts is not None
        return self.counts[owner]

    def run_draws(self, *name: str, owner: np.ndarray) -> np.ndarray:
        assert self.permits is not None
        return np.tile(self.permits[owner, None], (1, 4))

    draws = run_draws

    def labels(self, examples: np.ndarray) -> np.ndarray:
        return examples % 10

    def plan(self, owner: np.ndarray) -> Plan:
        return Plan(owner, tuple(client * 100 + np.arange(int(self.sizes[client])) for client in owner))

    @property
    def models(self) -> tuple[Weights, ...]:
        return (Weights(torch.zeros(self.clients), Layout(("w",), ((self.clients,),), 1)),)

    def shares(self, uploads: Uploads) -> np.ndarray:
        weight = uploads.examples * uploads.importance
        return weight / weight.sum()

    size = 1  # of the validation data

    def mixture_losses(self, mix: np.ndarray, rows: torch.Tensor, positions: range | None = None) -> np.ndarray:
        """Client k's model is the k-th unit vector, so a mixture's entries above 0 are the coalition's members."""
        models = mix @ rows.double().numpy()
        return -np.array([self.utility(frozenset(np.flatnonzero(model).tolist())) for model in models])

    @property
    def clients_data(self) -> "Stage":
        return self

    fleet = traffic = validation = clients_data  # one object answers whatever is asked

    @property
    def ctx(self) -> Context:
        """This stage as a part takes it, which asks no more of it than what the test wrote down."""
        return cast(Context, self)

    def at(self, number: int) -> "Stage":
        return replace(self, round=number)

    def uploads(self, plan: Plan) -> Uploads:
        """Every participant's delta is its own unit vector."""
        owner, ones = plan.owner, np.ones(len(plan.owner))
        importance = ones if plan.importance is None else plan.importance
        delta = torch.eye(self.clients)[torch.from_numpy(owner)]
        return Uploads(owner, owner * 0, plan.sizes, importance, delta, ones, ones)


def play(selector: Selector, stages: list[Stage]) -> tuple[list[list[int]], list[Memory]]:
    """Who was chosen in each round, and what was remembered after it."""
    memory: Memory = {}
    owners, memories = [], []
    for number, stage in enumerate(stages, start=1):
        now = stage.at(number)
        plan, memory = selector.choose(memory, now.ctx)
        memory = selector.observe(now.uploads(plan), memory, now.ctx)
        owners.append(plan.owner.tolist())
        memories.append(memory)
    return owners, memories
