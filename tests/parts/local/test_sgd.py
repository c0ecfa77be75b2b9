"""Steps of SGD by hand; one of them on all data is FedSGD."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from worlds import Tiny, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.values import SERVER, State, Trained
from fedexp.parts.local.sgd import SGD
from fedexp.simulation import context
from fedexp.simulation.round import run_round
from fedexp.simulation.rounds import run_rounds
from fedexp.simulation.setup.compatibility import refuse
from fedexp.simulation.world import World


@pytest.mark.law("algorithm=fedsgd", "a round is one step on the examples of all clients together")
def test_fedsgd_is_one_step_on_the_pooled_data(tiny: Tiny):
    world = world_of(tiny("algorithm=fedsgd", "federation=dirichlet", "federation.alpha=0.5", "local.lr=0.7"))
    state, _, _ = run_round(world.exp, world, world.initial_state())
    network = world.exp.model.network(world.exp.dataset.facts(world.exp.data_dir))
    network.load_state_dict(world.layout.views(world.first.flat.clone()))
    F.cross_entropy(network(world.train.x), world.train.y).backward()
    gradient = torch.cat([entry.grad.reshape(-1) for entry in network.parameters() if entry.grad is not None])
    torch.testing.assert_close(state.models[0].flat, world.first.flat - 0.7 * gradient, atol=1e-6, rtol=1e-5)


def test_weight_decay_joins_the_gradient_and_momentum_is_what_remains():
    rule, w, slots = SGD(lr=0.1, momentum=0.5, weight_decay=0.25), torch.tensor([4.0]), torch.zeros(1, 1)
    seen = []
    for grad in (1.0, -3.0):  # 1 + 4 / 4 = 2, v = 2, w = 3.8; -3 + 3.8 / 4 = -2.05, v = 1 - 2.05, w = 3.905
        direction = rule.direction(torch.tensor([grad]), w, torch.zeros(1))
        rule.update(w, direction, slots, torch.tensor(1.0), None)
        seen.append((direction.item(), slots[0].item(), w.item()))
    assert seen == [pytest.approx((2.0, 2.0, 3.8)), pytest.approx((-2.05, -1.05, 3.905))]


def test_without_momentum_nothing_is_kept_of_a_step():
    assert (SGD().slots, SGD(momentum=0.9).slots) == (0, 1)


def test_a_full_batch_step_is_one_step_on_everything(tiny: Tiny):
    rule = spec.build(tiny("local=full_batch_step")).local
    assert rule == SGD(batch_size="full", order="file", epochs=1, lr=0.5)
    assert rule.full_batch_steps(np.array([0, 1, 7, 1000])).tolist() == [0, 1, 1, 1]


LASTING = ("local.momentum=0.5", "local.worker_momentum=true")


def lived(world: World, state: State) -> list[State]:
    return [state for state, _, _ in run_rounds(world.exp, world, state)]


def test_lasting_momentum_by_hand(tiny: Tiny):
    """Momentum 1/2, one step a round of lr 1 with gradients 4, 2, 1: v = 4, 4, 3, also after a round without it."""
    world = world_of(tiny(*LASTING, "local.lr=1"))
    rule, zeros, memory, seen = world.exp.local, torch.zeros(1, world.layout.size), {}, []
    for owner, grad in ((7, 4.0), (3, 9.0), (7, 2.0), (7, 1.0)):
        start, anchor = rule.begin(zeros, np.array([owner]), memory, context.make_context(world, 1))
        rows, slots = start.clone(), torch.ones(1, *anchor.shape)
        rule.fill(slots, anchor)
        rule.update(rows[:, : anchor.shape[1]], torch.full(anchor.shape, grad), slots, torch.tensor(1.0), None)
        trained = Trained(np.array([owner]), np.array([1]), zeros, start, rows, slots[-1])
        delta, memory = rule.finish(trained, memory, context.make_context(world, 1))
        seen.append((owner, -delta[0, 0].item()))
    assert seen == [(7, 4.0), (3, 9.0), (7, 4.0), (7, 3.0)]
    assert (memory["owner"].tolist(), memory["rows"][:, 0].tolist()) == ([3, 7], [9.0, 3.0])


@pytest.mark.law("local=sgd", "of one client with lasting momentum three rounds are one round of three epochs")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_momentum_that_lasts_goes_on_where_it_ended(tiny: Tiny, engine: str):
    """One client whose model the server takes: three rounds are one of three epochs, in batches that do not mix."""
    alone = ("scenario.clients=1", "scenario.participants=1", "local.order=file", f"engine={engine}", *LASTING)
    three = world_of(tiny(*alone, "rounds=3"))
    one = world_of(tiny(*alone, "rounds=1", "local.epochs=3"))
    ends = [lived(world, world.initial_state())[-1].models[0].flat for world in (three, one)]
    torch.testing.assert_close(*ends, atol=1e-6, rtol=0)


@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_a_client_that_is_done_sooner_keeps_the_momentum_of_its_last_step(tiny: Tiny, engine: str):
    """Clients of different sizes in one bucket remember what they would alone."""
    words = ("federation=dirichlet", "federation.alpha=1", "selector=all", *LASTING, "local.weight_decay=0.1")
    kept = []
    for more in ((f"engine={engine}",), ("engine=loop",)):
        world = world_of(tiny(*words, *more))
        kept.append(lived(world, world.initial_state())[-1].memory["local"]["rows"])
    torch.testing.assert_close(*kept, atol=1e-6, rtol=0)


def test_lasting_momentum_is_resumed(tiny: Tiny):
    world = world_of(tiny(*LASTING, "rounds=5"))
    whole = lived(world, world.initial_state())
    assert torch.equal(lived(world, whole[1])[-1].models[0].flat, whole[-1].models[0].flat)


def test_what_is_not_finite_or_the_servers_is_not_kept(tiny: Tiny):
    world = world_of(tiny(*LASTING))
    rows = torch.zeros(3, world.layout.size)
    rows[1, 0] = torch.inf
    slot = torch.ones(3, world.layout.parameters)
    trained = Trained(np.array([SERVER, 1, 2]), np.array([1, 1, 1]), rows * 0, rows * 0, rows, slot)
    _, memory = world.exp.local.finish(trained, {}, context.make_context(world, 1))
    assert memory["owner"].tolist() == [2]


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize(
    "words",
    [LASTING, ("local=adamw",), ("local=scaffold", "local.momentum=0.5"), ("local=prox", "local.optimizer=adam")],
)
def test_private_training_is_the_same_in_both_engines(tiny: Tiny, words: tuple[str, ...]):
    private = ("privacy=dp_sgd", "privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3")
    more = ("local.batch_size=8", "local.epochs=[1,3]", "schedule=cosine", *private)
    worlds = [world_of(tiny(*words, *more, f"engine={engine}")) for engine in ("loop", "stacked")]
    ends = [lived(world, world.initial_state())[-1].models[0].flat for world in worlds]
    torch.testing.assert_close(*ends, atol=1e-9, rtol=0)


def test_lasting_momentum_needs_momentum(tiny: Tiny):
    with pytest.raises(ConfigError, match=r"local\.worker_momentum needs momentum > 0"):
        spec.build(tiny("local.worker_momentum=true"))


def test_clipping_a_batch_and_every_example_is_refused(tiny: Tiny):
    private = ("privacy=dp_sgd", "privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3")
    with pytest.raises(
        ConfigError, match=r"local\.clip_norm=1 would .* privacy=dp_sgd clips .* use local\.clip_norm=null"
    ):
        refuse(spec.build(tiny(*private, "local.clip_norm=1")))
