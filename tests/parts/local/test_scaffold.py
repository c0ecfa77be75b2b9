"""SCAFFOLD: two rounds by hand, one client, what the variates are, and what they are for."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from worlds import rounds_with_rows, uploads_like, world_of

from fedexp.core.values import Memory, State, Trained
from fedexp.simulation import context
from fedexp.simulation.checks.pending_checks import PendingChecks
from fedexp.simulation.messages import open_messages
from fedexp.simulation.round import fold, run_round
from fedexp.simulation.rounds import run_rounds
from fedexp.simulation.world import World

Tiny = Callable[..., dict[str, Any]]


def lived(world: World, count: int) -> list[State]:
    states = [world.initial_state()]
    for _ in range(count):
        states.append(run_round(world.exp, world, states[-1])[0])
    return states


def exchanged(world: World, trained: Trained, memory: Memory, number: int) -> tuple[torch.Tensor, Memory]:
    """What clients send of their model, and what they and the server remember once it has arrived."""
    rule, ctx = world.exp.local, context.make_context(world, number)
    message, memory = rule.finish(trained, memory, ctx)
    uploads = open_messages(world.exp, world.layout, uploads_like(message, trained.owner.tolist()))
    return uploads.delta, rule.receive(uploads.sort_by_owner(), memory, ctx)


def test_two_rounds_by_hand(tiny: Tiny):
    """Clients 0 and 1 of six have the gradients w - 1 and w - 4; two steps of lr 1/2 from x = 0.

    Round 1: y = 3/4 and 3, c_i = (x - y) / (2 * 1/2) = -3/4 and -3, c = -3.75 / 6 = -5/8, x = 15/8.
    Round 2: client 0 steps along w - 1 + 3/4 - 5/8 = w - 7/8: 11/8, 9/8; c_0 = -3/4 + 5/8 + 15/8 - 9/8 = 5/8.
    Client 1 along w - 4 + 3 - 5/8 = w - 13/8: 28/16, 27/16; c_1 = -3 + 5/8 + 15/8 - 27/16 = -35/16.
    c = -5/8 + (5/8 + 3/4 - 35/16 + 3) / 6 = -5/8 + 35/96.
    """
    world = world_of(tiny("local=scaffold", "local.lr=0.5"))
    rule, owner, target = world.exp.local, np.array([1, 0]), torch.tensor([[4.0], [1.0]])
    x, memory, told = world.first.flat * 0, {}, []
    for number in (1, 2):
        received = x.expand(2, -1)
        start, anchor = rule.begin(received, owner, memory, context.make_context(world, number))
        rows = start.clone()
        for _ in range(2):
            rule.update(rows, rule.direction(rows - target, rows, anchor), torch.zeros(0), torch.tensor(1.0), None)
        trained = Trained(owner, np.array([2, 2]), received, start, rows)
        delta, memory = exchanged(world, trained, memory, number)
        x = x + delta.mean(dim=0)
        told.append((x[0].item(), *memory["rows"][:, 0].tolist(), memory["server"][0].item()))
    assert memory["owner"].tolist() == [0, 1]
    assert told[0] == pytest.approx((15 / 8, -3 / 4, -3, -5 / 8))
    assert told[1] == pytest.approx(((9 / 8 + 27 / 16) / 2, 5 / 8, -35 / 16, -5 / 8 + 35 / 96))


@pytest.mark.law("local=scaffold", "one client alone is SGD")
def test_one_client_alone_is_sgd(tiny: Tiny):
    alone = ("scenario.clients=1", "scenario.participants=1")
    plain, ours = (world_of(tiny(f"local={rule}", *alone)) for rule in ("sgd", "scaffold"))
    for one, other in zip(lived(plain, 4), lived(ours, 4), strict=True):
        torch.testing.assert_close(one.models[0].flat, other.models[0].flat, atol=1e-6, rtol=0)


@pytest.mark.law("local=scaffold", "the first round is FedAvg's with equal weights, to the byte")
def test_the_first_round_is_fedavgs_bit_by_bit(tiny: Tiny):
    plain, ours = (world_of(tiny(f"local={rule}", "aggregator.weighting=uniform")) for rule in ("sgd", "scaffold"))
    assert torch.equal(lived(plain, 1)[1].models[0].flat, lived(ours, 1)[1].models[0].flat)


@pytest.mark.law("local=scaffold", "if all take part, the server's variate is the mean of the clients' at all times")
@pytest.mark.parametrize("clients", [5, 6])
def test_the_servers_variate_is_the_mean_of_the_clients_when_all_take_part(tiny: Tiny, clients: int):
    world = world_of(tiny("algorithm=scaffold", "selector=all", f"scenario.clients={clients}"))
    for state in lived(world, 3)[1:]:
        held = state.memory["local"]
        assert held["owner"].tolist() == list(range(clients))
        torch.testing.assert_close(held["server"], held["rows"].mean(dim=0), atol=1e-6, rtol=0)


@pytest.mark.law(
    "local=scaffold", "after one step on a full batch a client's variate is its gradient at the received model"
)
def test_a_variate_is_the_mean_gradient_of_its_steps(tiny: Tiny):
    """With a full batch and one step: the gradient at the received model, whatever the variates were."""
    words = ("selector=all", "local.batch_size=full", "local.epochs=1")
    world = world_of(tiny("algorithm=scaffold", *words))
    states = lived(world, 3)
    for before, after in pairwise(states):
        held = after.memory["local"]
        network = world.exp.model.network(world.exp.dataset.facts(world.exp.data_dir))
        for client, variate in zip(held["owner"].tolist(), held["rows"], strict=True):
            network.load_state_dict(world.layout.views(before.models[0].flat.clone()))
            shard = torch.from_numpy(world.partition.shard(client))
            loss = torch.nn.functional.cross_entropy(network(world.train.inputs(shard)), world.train.y[shard])
            grads = torch.autograd.grad(loss, list(network.parameters()))
            torch.testing.assert_close(variate, torch.cat([grad.reshape(-1) for grad in grads]), atol=1e-5, rtol=0)


def slope(world: World, state: State) -> float:
    """Norm of the gradient of the mean loss over all examples."""
    network = world.exp.model.network(world.exp.dataset.facts(world.exp.data_dir))
    network.load_state_dict(world.layout.views(state.models[0].flat.clone()))
    loss = torch.nn.functional.cross_entropy(network(world.train.inputs(slice(0, None))), world.train.y)
    return float(torch.cat([each.reshape(-1) for each in torch.autograd.grad(loss, list(network.parameters()))]).norm())


@pytest.mark.law(
    "local=scaffold", "where FedAvg drifts, the gradient of the common loss ends below a fifth of FedAvg's"
)
def test_it_finds_the_common_optimum_where_fedavg_drifts(tiny: Tiny):
    """Clients of one class each, many local steps: the gradient of the common loss vanishes only with the variates."""
    hard = (
        "model.hidden=[]",
        "dataset.classes=3",
        "dataset.difficulty=2",
        "federation=shards",
        "federation.shards_per_client=1",
        "selector=all",
        "scenario.clients=3",
        "local.lr=0.1",
        "local.batch_size=full",
        "local.epochs=null",
        "local.steps=10",
        "aggregator.weighting=uniform",
    )
    slopes = {}
    for rule in ("sgd", "scaffold"):
        world = world_of(tiny(f"local={rule}", *hard))
        assert world.partition.sizes.tolist() == [40, 40, 40]
        slopes[rule] = slope(world, lived(world, 60)[-1])
    assert slopes["scaffold"] < 0.2 * slopes["sgd"]


@pytest.mark.law("local=scaffold", "a round sends twice the bytes of FedAvg, down and up")
def test_it_sends_twice_as_much(tiny: Tiny):
    sizes = []
    for rule in ("sgd", "scaffold"):
        world = world_of(tiny(f"local={rule}", "fleet=simulated"))
        _, row, _ = next(run_rounds(world.exp, world, world.initial_state()))
        sizes.append((row["mb_up"], row["mb_down"], context.make_context(world, 1).fleet.resources(np.arange(2)).bits))
    assert sizes[1] == tuple(2 * value for value in sizes[0])


@pytest.mark.law(
    "local=scaffold", "after one step on a full batch a client's variate is the same with momentum, Adam and AdamW"
)
@pytest.mark.parametrize(
    "words", [(), ("momentum=0.9",), ("optimizer=adam", "lr=0.01"), ("optimizer=adamw", "lr=0.01")]
)
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_a_variate_is_the_mean_gradient_whatever_the_steps(tiny: Tiny, words: tuple[str, ...], engine: str):
    """The first of K full-batch steps has the gradient at the received model; with K = 1 that is the variate."""
    keys = [f"local.{word}" for word in words]
    world = world_of(tiny("local=scaffold", "selector=all", "local.batch_size=full", f"engine={engine}", *keys))
    plain = world_of(tiny("local=scaffold", "selector=all", "local.batch_size=full"))
    held, expected = (lived(one, 1)[-1].memory["local"] for one in (world, plain))
    torch.testing.assert_close(held["rows"], expected["rows"], atol=1e-5, rtol=0)
    torch.testing.assert_close(held["server"], expected["server"], atol=1e-5, rtol=0)


def test_momentum_by_hand(tiny: Tiny):
    """One client of one with the gradients 4 and 2: the variate is 3, however far momentum 1/2 went."""
    world = world_of(tiny("local=scaffold", "local.momentum=0.5", "local.lr=1"))
    rule, zeros, owner = world.exp.local, torch.zeros(1, world.layout.size), np.array([2])
    start, anchor = rule.begin(zeros, owner, {}, context.make_context(world, 1))
    rows, slots = start.clone(), torch.zeros(rule.slots, *anchor.shape)
    for grad in (4.0, 2.0):
        w = rows[:, : anchor.shape[1]]
        step = rule.direction(torch.full(anchor.shape, grad), w, anchor)
        rule.update(w, step, slots, torch.tensor(1.0), None)
    trained = Trained(owner, np.array([2]), zeros, start, rows, slots[-1])
    delta, memory = exchanged(world, trained, {}, 1)
    assert (delta[0, 0].item(), memory["rows"][0, 0].item()) == (-4.0 - 4.0, 3.0)
    assert memory["server"][0].item() == pytest.approx(3 / 6)


def test_at_rate_zero_nothing_is_learnt_of_the_gradients(tiny: Callable[..., dict[str, Any]]):
    words = ("local=scaffold", "schedule=linear", "schedule.rounds=1", "rounds=3", "selector=all")
    world = world_of(tiny(*words))
    for state, _, _ in run_rounds(world.exp, world, world.initial_state()):
        assert state.memory["aggregator"]["columns"]["dropped"] == 0
        assert state.memory["local"]["server"].isfinite().all()


class TestVariatesAreSent:
    """Whatever happens to a client's message happens to its variate; the client keeps what it computed."""

    def played(self, tiny: Tiny, *words: str) -> tuple[World, State]:
        """The world, and the state after the first round, in which all take part."""
        world = world_of(tiny("algorithm=scaffold", "selector=all", "rounds=1", *words))
        return world, next(rounds_with_rows(world))[0]

    def test_an_attack_turns_the_variates_of_the_malicious(self, tiny: Tiny):
        _, plain = self.played(tiny)
        attacked_world, attacked = self.played(tiny, "attack=sign_flip", "attack.scale=1", "scenario.malicious=2")
        rows = plain.memory["local"]["rows"]
        assert torch.equal(attacked.memory["local"]["rows"], rows)
        sign = torch.from_numpy(np.where(np.isin(np.arange(6), attacked_world.malicious), -1.0, 1.0)).to(rows)
        torch.testing.assert_close(attacked.memory["local"]["server"], (sign[:, None] * rows).mean(dim=0))
        torch.testing.assert_close(plain.memory["local"]["server"], rows.mean(dim=0))

    def test_a_codec_rounds_them(self, tiny: Tiny):
        _, rounded = self.played(tiny, "codec=float16")
        rows = rounded.memory["local"]["rows"]
        torch.testing.assert_close(rounded.memory["local"]["server"], rows.half().to(rows.dtype).mean(dim=0))
        assert rounded.memory["codec"]["rows"].shape == (6, 2 * rows.shape[1])

    def test_privacy_clips_the_whole_message_and_noises_both_rows(self, tiny: Tiny):
        words = ("privacy.clip=0.5", "privacy.delta=1e-3", "aggregator.weighting=uniform")
        for privacy in ("client_local", "client_central"):
            quiet, noised = (
                self.played(tiny, f"privacy={privacy}", *words, f"privacy.noise_multiplier={noise}")[1]
                for noise in (1e-6, 1)
            )
            _, plain = self.played(tiny, *words[2:])
            moved = [state.models[0].flat - plain.models[0].flat for state in (quiet, noised)]
            assert all(move.any() for move in moved)
            rows, variate = plain.memory["local"]["rows"], quiet.memory["local"]["server"]
            assert variate.norm() < 0.5 < rows.mean(dim=0).norm()
            noise = noised.memory["local"]["server"] - variate
            std = 0.5 / 6 * (1 if privacy == "client_central" else 6**0.5)
            assert float(noise.std()) == pytest.approx(std, rel=0.1)

    @pytest.mark.law("local=scaffold", "a client that is not heard does not move the server's variate")
    def test_who_is_not_heard_moves_no_variate_of_the_server(self, tiny: Tiny):
        world, state = self.played(tiny, "fleet=simulated", "fleet.dropout=0.5")
        heard = context.make_context(world, 1).fleet.draws("fleet", owner=np.arange(6))[:, 2] >= 0.5
        assert 0 < heard.sum() < 6
        memory = state.memory["local"]
        assert memory["owner"].tolist() == list(range(6))
        torch.testing.assert_close(memory["server"], memory["rows"][torch.from_numpy(heard)].sum(dim=0) / 6)

    def test_a_client_whose_variate_is_not_finite_is_dropped_whole(self, tiny: Tiny):
        world = world_of(tiny("algorithm=scaffold"))
        size, parameters = world.layout.size, world.layout.parameters
        message = torch.ones(3, size + parameters)
        message[1, size + 2] = torch.inf
        uploads = open_messages(world.exp, world.layout, uploads_like(message))
        models, memory = fold(world.exp, (world.first,), uploads, {}, context.make_context(world, 1), PendingChecks())
        assert memory["aggregator"]["columns"]["dropped"] == 1
        torch.testing.assert_close(memory["local"]["server"], torch.full((parameters,), 2 / 6))
        torch.testing.assert_close(models[0].flat, world.first.flat + 1)
