"""Zeno: who is kept, on a loss written by hand and on the validation data of a world."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pytest
import torch
from matrices import normal
from torch.nn import functional as F

from fedexp.core import part as spec
from fedexp.core.random_streams import stream
from fedexp.core.values import Layout, Uploads, Weights
from fedexp.parts.aggregator.zeno import Zeno, top_positions
from fedexp.parts.context import Context
from fedexp.simulation import context
from fedexp.simulation.build_world import build_world
from fedexp.training.workers.pool import WorkerPool


@dataclass
class Server:
    """Holds validation examples that are numbers: the loss of a model is its mean squared distance to them."""

    numbers: np.ndarray
    round: int = 1
    asked: list[Any] = field(default_factory=list)

    @property
    def validation(self) -> "Server":
        return self

    @property
    def size(self) -> int:
        return len(self.numbers)

    def rng(self, *name: str) -> np.random.Generator:
        return stream(0, self.round, *name)

    def losses(self, rows: torch.Tensor, examples: np.ndarray | None = None) -> np.ndarray:
        self.asked.append(examples)
        numbers = self.numbers if examples is None else self.numbers[examples]
        return ((rows.double().numpy() - numbers) ** 2).mean(axis=1)


def uploads_of(delta: torch.Tensor) -> Uploads:
    owner = np.arange(len(delta))
    return Uploads(owner, owner * 0, owner + 1, owner * 0 + 1.0, delta, owner * 1.0, owner * 1.0)


def moved(rule: Zeno, sent: list[float], server: Server) -> tuple[float, dict]:
    weights = Weights(torch.tensor([10.0]), Layout(("w",), ((1,),), 1))
    after, memory = rule.combine(weights, uploads_of(torch.tensor(sent).view(-1, 1)), {}, cast(Context, server))
    return after.flat.item() - 10, memory["columns"]


def test_by_hand():
    # the server's optimum is 13: steps of 2, 4 and 3 end within 1 of it, -5 and 9 do not
    server, sent = Server(np.full(6, 13.0)), [2.0, -5.0, 4.0, 9.0, 3.0]
    assert moved(Zeno(byzantine=2, rho=0), sent, server) == (3, {"byzantine": 2, "violated": 0, "kept": 3})
    # losses 1, 64, 1, 36, 0; with rho = 1 the squared norms 4, 25, 16, 81, 9 come to that
    assert moved(Zeno(byzantine=3, rho=1), sent, server)[0] == 2.5
    assert moved(Zeno(byzantine=4, rho=1), sent, server)[0] == 2
    assert moved(Zeno(byzantine=9), sent, server) == (3, {"byzantine": 4, "violated": 1, "kept": 1})


def test_all_are_evaluated_at_once_on_a_fresh_batch_each_round():
    server = Server(np.arange(50.0))
    for number in (1, 2):
        server.round = number
        moved(Zeno(batch_size=4), [1.0, 2.0, 3.0], server)
    moved(Zeno(batch_size="full"), [1.0], server)
    moved(Zeno(batch_size=50), [1.0], server)
    first, second, *rest = server.asked
    assert rest == [None, None]
    assert len(set(first)) == len(set(second)) == 4
    assert set(first) != set(second)


def test_the_authors_penalty_is_a_mean_over_coordinates():
    delta = torch.tensor([[3.0, 4.0, 0.0, 0.0]])
    assert Zeno(rho=2).penalties(delta).tolist() == [50]
    assert Zeno(rho=2, penalty="mean_square").penalties(delta).tolist() == [12.5]


def test_ties_and_what_is_no_number():
    nothing = np.zeros(5)
    assert top_positions(np.array([2.0, 1.0, 2.0, 1.0, 2.0]), nothing, 3).tolist() == [0, 1, 3]
    assert top_positions(np.array([np.nan, 5.0, np.inf, -np.inf, 4.0]), nothing, 2).tolist() == [1, 4]
    assert top_positions(np.array([np.nan, np.inf]), np.array([np.inf, 0]), 1).tolist() == [0]


@pytest.mark.law("aggregator=zeno", "rho = 0 keeps those whose steps lower the loss on validation data most")
@pytest.mark.parametrize("model", [("model=mlp",), ("model=simple_cnn", "dataset.shape=[1,8,8]")])
def test_without_penalty_it_keeps_those_whose_step_lowers_the_validation_loss_most(
    tiny: Callable[..., dict[str, Any]], model: tuple[str, ...]
):
    words = ("aggregator=zeno", "aggregator.rho=0", "aggregator.batch_size=full", "aggregator.byzantine=4", *model)
    exp = spec.build(tiny(*words))
    world = build_world(exp, None, WorkerPool())
    assert world.validation is not None
    delta = normal(0, 10, world.layout.size) * 0.1
    after, memory = exp.aggregator.combine(world.first, uploads_of(delta), {}, context.make_context(world, 1))
    network = exp.model.network(exp.dataset.facts(exp.data_dir)).eval()
    losses = []
    for row in world.first.flat + delta:
        logits = torch.func.functional_call(network, world.layout.views(row), (world.validation.inputs(slice(None)),))
        losses.append(F.cross_entropy(logits, world.validation.y).item())
    best = np.sort(np.argsort(losses)[:6])
    torch.testing.assert_close(after.flat, world.first.flat + delta[best].double().mean(dim=0).float())
    assert memory["columns"]["kept"] == 6


@pytest.mark.law("aggregator=zeno", "a client whose step breaks the model is left out")
def test_a_client_that_breaks_the_model_is_left_out(tiny: Callable[..., dict[str, Any]]):
    exp = spec.build(tiny("aggregator=zeno", "aggregator.byzantine=1"))
    world = build_world(exp, None, WorkerPool())
    delta = normal(1, 4, world.layout.size) * 0.1
    delta[1] = 3e38
    after, _ = exp.aggregator.combine(world.first, uploads_of(delta), {}, context.make_context(world, 1))
    torch.testing.assert_close(after.flat, world.first.flat + delta[[0, 2, 3]].double().mean(dim=0).float())
