"""MOON: the contrastive term and a round by hand, its limiting cases, both engines, what is remembered."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from composing import experiment
from own_targets import told
from plain_training import AUTOGRAD_SGD
from torch import nn
from torch.nn import functional as F
from worlds import Tiny, demand_same_rounds, first_round, world_of

from fedexp.core.errors import ConfigError
from fedexp.core.values import State, Uploads
from fedexp.parts import Facts, Model
from fedexp.parts.local.moon import Moon, contrastive_loss
from fedexp.run.state import checkpoint
from fedexp.simulation.round import run_round
from fedexp.simulation.rounds import run_rounds
from fedexp.simulation.setup import compatibility
from fedexp.simulation.world import World

UNEQUAL = ("federation=dirichlet", "federation.alpha=1", "local.batch_size=8", "model.hidden=[6]")
MOON = ("local=moon", *UNEQUAL, "scenario.clients=4", "scenario.participants=4")


def lived(world: World, count: int) -> list[tuple[State, Uploads]]:
    """States and uploads of so many rounds."""
    state, found = world.initial_state(), []
    for _ in range(count):
        state, _, sent = run_round(world.exp, world, state)
        found.append((state, sent))
    return found


def test_the_contrast_by_hand():
    """Cosines of 1 and 0 at temperature 0.5: -log(e^2 / (e^2 + e^0)); the other way round -log(1 / (1 + e^2))."""
    mine, other = torch.tensor([[2.0, 0.0]], dtype=torch.float64), torch.tensor([[0.0, 3.0]], dtype=torch.float64)
    assert contrastive_loss(mine, 5 * mine, other, 0.5).item() == pytest.approx(-math.log(math.e**2 / (math.e**2 + 1)))
    assert contrastive_loss(mine, other, 5 * mine, 0.5).item() == pytest.approx(math.log(1 + math.e**2))
    assert contrastive_loss(mine, other, other, 0.5).item() == pytest.approx(math.log(2))


@pytest.mark.usefixtures("_double")
def test_a_client_does_what_plain_pytorch_does(tiny: Tiny):
    """The second round, in which the received, the last and the first model differ."""
    world = world_of(tiny(*MOON, "local.momentum=0.9", "local.mu=5"))
    (state, before), (_, sent) = lived(world, 2)
    facts = world.exp.dataset.facts(world.exp.data_dir)
    task = first_round(world, number=2)
    row = 1
    client = int(sent.owner[row])
    own = world.first.flat + before.delta[list(before.owner).index(client)]
    models = []
    for flat in (state.models[0].flat, state.models[0].flat, own):
        models.append(world.exp.model.network(facts))
        models[-1].load_state_dict(world.layout.views(flat.clone()))
    mine, received, last = models
    descend = torch.optim.SGD(mine.parameters(), lr=world.exp.local.lr, momentum=0.9)
    batches = task.batches[row]
    for a, b in zip(batches.bounds[:-1], batches.bounds[1:], strict=True):
        index = torch.from_numpy(task.plan.shards[row][batches.order[a:b]])
        x, y = world.train.x[index].double(), world.train.y[index]
        z, near, far = (torch.relu(net[1](x.flatten(1))) for net in (mine, received, last))
        cosines = [F.cosine_similarity(z, other.detach(), dim=1) / 0.5 for other in (near, far)]
        term = F.cross_entropy(torch.stack(cosines, dim=1), torch.zeros(len(y), dtype=torch.int64))
        descend.zero_grad()
        (F.cross_entropy(mine(x), y) + 5 * term).backward()
        descend.step()
    torch.testing.assert_close(state.models[0].flat + sent.delta[row], world.layout.flatten(mine), atol=1e-9, rtol=0)


@pytest.mark.usefixtures("_double")
def test_the_engines_agree(tiny: Tiny):
    for words in (MOON, ("local=moon", "model=har_cnn", "dataset.shape=[3,16]", "local.batch_size=8")):
        one, other = (lived(world_of(tiny(*words, f"engine={engine}")), 2)[-1] for engine in ("loop", "stacked"))
        torch.testing.assert_close(one[1].delta, other[1].delta, atol=1e-9, rtol=0)
        torch.testing.assert_close(one[0].models[0].flat, other[0].models[0].flat, atol=1e-9, rtol=0)


@pytest.mark.law("local=moon", "mu = 0 is FedAvg, to the byte where autograd takes the gradients of both")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_without_weight_it_is_fedavg_to_the_byte(tiny: Tiny, engine: str):
    words = (*MOON[1:], "rounds=3", "local.momentum=0.9", f"engine={engine}")
    world = world_of(tiny(MOON[0], *words, "local.mu=0"))
    demand_same_rounds(world, world_of(tiny(*AUTOGRAD_SGD, *words)))


@pytest.mark.law("local=moon", "mu = 0 is SGD, whichever formula gives the gradient")
@pytest.mark.law("local=moon", "the first round is SGD's whatever mu is, as the last model is the received one")
@pytest.mark.usefixtures("_double")
def test_without_weight_or_in_the_first_round_it_is_sgd(tiny: Tiny):
    """Then the received and the last model are the same, and the term is constant."""
    plain = lived(world_of(tiny("local=sgd", *MOON[1:])), 2)
    weightless = lived(world_of(tiny(*MOON, "local.mu=0")), 2)
    first = lived(world_of(tiny(*MOON, "local.mu=5")), 1)
    torch.testing.assert_close(weightless[1][1].delta, plain[1][1].delta, atol=1e-12, rtol=0)
    torch.testing.assert_close(first[0][1].delta, plain[0][1].delta, atol=1e-12, rtol=0)


def test_every_kind_of_targets_and_what_is_remembered(tiny: Tiny):
    for targets in ("labels", "numbers", "tokens"):
        config = told(tiny("local=moon", "scenario.clients=4", "scenario.participants=2"), targets)
        (state, sent), *_ = lived(world_of(config), 2)
        assert state.memory["local"]["owner"].tolist() == sorted(sent.owner.tolist())


def test_the_last_models_come_back_from_disk(tiny: Tiny, tmp_path: Path):
    config = tiny(*MOON, "rounds=4")
    world = world_of(config)
    whole = lived(world, 4)
    checkpoint.save(tmp_path, whole[1][0], config, {"name": "loop", "reason": ""})
    loaded = checkpoint.load(tmp_path, config, torch.device("cpu"))
    assert loaded is not None
    *_, (state, _, _) = run_rounds(world.exp, world, loaded.state)
    assert torch.equal(state.models[0].flat, whole[-1][0].models[0].flat)


class Curved(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv1d(1, 10, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x[:, None])[:, :, 0]


class WithoutLinear(Model):
    def network(self, facts: Facts) -> nn.Module:
        return Curved()


class MarkedConvolution(nn.Conv1d):
    takes_features = True


class Marked(Curved):
    def __init__(self) -> None:
        super().__init__()
        self.layer = MarkedConvolution(1, 10, 8)


class WithMarkedLayer(Model):
    def network(self, facts: Facts) -> nn.Module:
        return Marked()


def test_a_layer_that_is_marked_takes_features_though_it_is_not_linear():
    Moon(epochs=1, batch_size=8).refuse(WithMarkedLayer(), Facts((8,), 10, 100))


def test_a_network_without_a_linear_layer_is_refused():
    with pytest.raises(ConfigError, match=r"^local=moon compares what the last linear layer is given, but model=\w+ "):
        Moon(epochs=1, batch_size=8).refuse(WithoutLinear(), Facts((8,), 10, 100))


@pytest.mark.parametrize("rule", ["moon", "fedlc"])
def test_single_examples_cannot_be_protected_then(rule: str):
    spent = ("privacy=dp_sgd", "privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3")
    said = rf"^local={rule} makes an example's cost depend on .* but privacy=dp_sgd .*; use local=sgd$"
    with pytest.raises(ConfigError, match=said):
        compatibility.refuse(experiment(f"local={rule}", *spent))
    assert np.isfinite(lived(world_of_client_privacy(rule), 1)[0][1].delta.numpy()).all()


def world_of_client_privacy(rule: str) -> World:
    from composing import tiny

    spent = ("privacy=client_central", "privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3")
    return world_of(tiny(f"local={rule}", *spent, "aggregator.weighting=uniform"))
