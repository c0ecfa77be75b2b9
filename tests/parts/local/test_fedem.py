"""FedEM: weights, shares and a step by hand, two rounds in plain PyTorch, its limit, and what never leaves a client."""

import copy
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from own_losses import Costing
from own_targets import told
from plain_training import AUTOGRAD_SGD
from torch.nn import functional as F
from worlds import Tiny, demand_same_rounds, first_round, rounds_with_rows, same, train_first_round, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.replace_unchecked import replace_unchecked
from fedexp.core.values import State, Weights
from fedexp.parts.layers import Mixing
from fedexp.parts.local.contract import ModelOutputs
from fedexp.parts.local.fedem import SMALLEST, FedEM, responsibilities, updated_log_shares
from fedexp.parts.loss.cross_entropy import CrossEntropy
from fedexp.parts.model.mixture import MixtureNetwork
from fedexp.run.state import checkpoint
from fedexp.simulation import context
from fedexp.simulation.measures.own_models import personal_models
from fedexp.simulation.round import run_round
from fedexp.simulation.setup import compatibility
from fedexp.simulation.world import World

UNEQUAL = ("federation=dirichlet", "federation.alpha=1", "local.batch_size=8", "model.component.hidden=[6]")
FEDEM = ("local=fedem", "model=mixture", *UNEQUAL)
ALL = ("selector=all", "rounds=2")
EVERYONE = np.arange(6)


def share_columns(world: World) -> np.ndarray:
    return world.layout.columns((Mixing.shares,))


def network_of(world: World, row: torch.Tensor) -> MixtureNetwork:
    """The network with the entries of a row `[D]`."""
    network = world.exp.model.network(world.exp.dataset.facts(world.exp.data_dir))
    assert isinstance(network, MixtureNetwork)
    network.load_state_dict(world.layout.views(row.clone()))
    return network


def parts_of(probabilities: list[list[float]], shares: list[float]) -> torch.Tensor:
    """log pi_m + log p_m `[B, M, 2]` of examples whose class 0 has these probabilities `[B][M]`."""
    p = torch.tensor(probabilities, dtype=torch.float64)
    return torch.stack([p, 1 - p], dim=-1).log() + torch.tensor(shares, dtype=torch.float64).log()[:, None]


@pytest.mark.law("local=fedem", "the weights of an example sum to 1 over the components, and so do a client's shares")
@pytest.mark.parametrize(
    ("shares", "weights", "new_share"),
    [([1 / 2, 1 / 2], [2 / 3, 1 / 4, 1 / 2], 17 / 36), ([1 / 4, 3 / 4], [2 / 5, 1 / 10, 1 / 4], 1 / 4)],
)
def test_weights_and_shares_by_hand(shares: list[float], weights: list[float], new_share: float):
    """Probabilities of the true class: 4/5, 1/5, 1/2 in the first component, 2/5, 3/5, 1/2 in the second."""
    probabilities = [[0.8, 0.4], [0.2, 0.6], [0.5, 0.5]]
    q = responsibilities(parts_of(probabilities, shares), torch.zeros(3, dtype=torch.int64))
    assert q[:, 0].tolist() == pytest.approx(weights)
    assert q.sum(dim=1).tolist() == pytest.approx([1.0] * 3)
    losses = -torch.tensor(probabilities, dtype=torch.float64).log()
    new = updated_log_shares(torch.tensor(shares, dtype=torch.float64).log(), losses).exp()
    assert new.tolist() == pytest.approx([new_share, 1 - new_share])


def test_a_share_never_becomes_0_and_without_examples_it_stays():
    old = torch.tensor([0.25, 0.75], dtype=torch.float64).log()
    assert torch.equal(updated_log_shares(old, torch.zeros(0, 2)), old)
    new = updated_log_shares(old, torch.tensor([[0.0, 1e4], [0.0, torch.inf]], dtype=torch.float64))
    assert new.exp().tolist() == pytest.approx([1.0, SMALLEST])
    assert new.isfinite().all()


def test_a_step_by_hand():
    """Logits (ln 3, 0) and (0, ln 3), equal shares, class 0: weights 3/4 and 1/4, and both logits move by 3/16.

    The slope at the logits of a component is its weight times its probabilities less those of the class: 3/4 (3/4 - 1)
    and 1/4 (1/4 - 1). The shares of the model in training have no part in it.
    """
    w = torch.tensor([[math.log(3), 0.0, 0.0, math.log(3)]], dtype=torch.float64, requires_grad=True)
    log_p = w.view(1, 2, 2).log_softmax(-1)
    received = log_p.detach() + math.log(1 / 2)
    mine = log_p + torch.tensor([0.1, 0.9], dtype=torch.float64).log()[:, None]
    outputs = [ModelOutputs(parts.logsumexp(1), parts) for parts in (mine, received)]
    cost = FedEM().cost(CrossEntropy(), outputs[0], (outputs[1],), torch.tensor([0]), None)
    assert cost.item() == pytest.approx(3 / 4 * math.log(4 / 3) + 1 / 4 * math.log(4))
    (grad,) = torch.autograd.grad(cost.sum(), w)
    row = w.detach().clone()
    FedEM(lr=1.0).update(row, grad, torch.zeros(0, 1, 4), torch.tensor(1.0), None)
    assert (row - w).tolist() == [pytest.approx([3 / 16, -3 / 16, 3 / 16, -3 / 16])]


@pytest.mark.law("local=fedem", "the gradient of each component is that of its own loss, weighted by the client's q")
@pytest.mark.usefixtures("_double")
def test_the_gradient_is_the_weighted_sum_of_the_components_own(tiny: Tiny):
    world = world_of(tiny(*FEDEM))
    network = network_of(world, world.first.flat)
    x, y = world.train.inputs(slice(0, 9)), world.train.y[:9]
    weight = torch.rand(9, 3).softmax(dim=1)
    received = weight.log()[:, :, None].expand(-1, -1, 10)  # whatever the class, these are the weights
    features = torch.stack([h(x).log_softmax(-1) for h in network.components], dim=1) + torch.randn(3, 1)
    mine, theirs = (ModelOutputs(parts.logsumexp(1), parts) for parts in (features, received))
    costs = FedEM().cost(CrossEntropy(), mine, (theirs,), y, None)
    grads = torch.autograd.grad(costs.mean(), list(network.parameters()))
    expected = []
    for m, component in enumerate(network.components):
        loss = (weight[:, m] * F.cross_entropy(component(x), y, reduction="none")).sum() / 9
        expected += torch.autograd.grad(loss, list(component.parameters()))
    torch.testing.assert_close(grads, tuple(expected), atol=1e-12, rtol=0)


def in_plain_pytorch(world: World, rounds: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The components in one row, and the clients' shares `[C, M]`, after each round, by modules and optimizers."""
    server = list(network_of(world, world.first.flat).components)
    pi, history = torch.full((6, len(server)), 1 / len(server)), []
    for number in range(1, rounds + 1):
        task, trained, sizes = first_round(world, number), [], []
        for client, (shard, batches) in enumerate(zip(task.plan.shards, task.batches, strict=True)):
            x, y = world.train.x[torch.from_numpy(shard)].double(), world.train.y[torch.from_numpy(shard)]
            components = copy.deepcopy(server)
            likelihood = [F.softmax(h(x), dim=1)[torch.arange(len(y)), y].detach() for h in components]
            joint = torch.stack([pi[client, m] * p for m, p in enumerate(likelihood)])
            q = joint / joint.sum(dim=0)
            pi[client] = q.mean(dim=1)
            for m, component in enumerate(components):
                optimizer = torch.optim.SGD(component.parameters(), lr=world.exp.local.lr)
                for a, b in zip(batches.bounds[:-1], batches.bounds[1:], strict=True):
                    index = torch.from_numpy(batches.order[a:b])
                    loss = (q[m, index] * F.cross_entropy(component(x[index]), y[index], reduction="none")).mean()
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            trained.append(torch.cat([entry.detach().reshape(-1) for h in components for entry in h.parameters()]))
            sizes.append(len(y))
        mean = torch.stack([n / sum(sizes) * row for n, row in zip(sizes, trained, strict=True)]).sum(dim=0)
        torch.nn.utils.vector_to_parameters(mean, [entry for h in server for entry in h.parameters()])
        history.append((mean.clone(), pi.clone()))
    return history


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_two_rounds_are_what_plain_pytorch_does(tiny: Tiny, engine: str):
    world = world_of(tiny(*FEDEM, *ALL, "local.epochs=2", "local.lr=0.3", f"engine={engine}"))
    history = in_plain_pytorch(world, 2)
    for (state, _, _), (components, pi) in zip(rounds_with_rows(world), history, strict=True):
        row = state.models[0].flat[: world.layout.parameters]
        torch.testing.assert_close(row, components, atol=1e-9, rtol=0)
        torch.testing.assert_close(state.memory["personal"]["rows"].exp(), pi, atol=1e-9, rtol=0)
    assert (history[1][1] - history[0][1]).abs().max() > 1e-3  # the shares before a round matter
    assert (history[0][1] - 1 / 3).abs().max() > 1e-3


@pytest.mark.law("local=fedem", "one component is FedAvg of that model")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
@pytest.mark.usefixtures("_double")
def test_one_component_is_fedavg(tiny: Tiny, engine: str):
    """Up to rounding: the cost goes through three logarithms of a softmax where the loss takes one."""
    words = ("federation=dirichlet", *ALL, f"engine={engine}")
    fedem = world_of(tiny("local=fedem", "model=mixture", "model.components=1", *words))
    fedavg = world_of(tiny("local=sgd", "model=mlp", *words))
    size = fedavg.layout.size
    for (ours, row, sent), (theirs, other_row, other_sent) in zip(
        rounds_with_rows(fedem), rounds_with_rows(fedavg), strict=True
    ):
        torch.testing.assert_close(ours.models[0].flat[:size], theirs.models[0].flat, atol=1e-12, rtol=0)
        torch.testing.assert_close(sent.delta[:, :size], other_sent.delta, atol=1e-12, rtol=0)
        assert row["train_loss"] == pytest.approx(other_row["train_loss"])
        assert (row["mb_up"], row["mb_down"]) == (other_row["mb_up"], other_row["mb_down"])
        assert not ours.memory["personal"]["rows"].any()


@pytest.mark.law(
    "local=fedem", "one component is FedAvg of a mixture of one, to the byte where autograd takes both gradients"
)
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_one_component_is_fedavg_of_a_mixture_of_one_to_the_byte(tiny: Tiny, engine: str):
    words = (*FEDEM[1:], "model.components=1", "rounds=3", "local.momentum=0.9", f"engine={engine}")
    fedem, fedavg = world_of(tiny("local=fedem", *words)), world_of(tiny(*AUTOGRAD_SGD, *words))
    demand_same_rounds(fedem, fedavg, ("train_loss",))  # FedAvg sends the share, too


@pytest.mark.law("local=fedem", "a client's shares never leave it, whatever an attack puts there")
def test_shares_sum_to_1_and_never_leave_their_client(tiny: Tiny):
    attack = ("attack=gaussian", "scenario.malicious=2")
    world = world_of(tiny(*FEDEM, "rounds=4", *attack))
    columns, first = share_columns(world), world.first.flat
    rounds = list(rounds_with_rows(world))
    for state, _, sent in rounds:
        assert not sent.delta[:, columns].any()
        assert torch.equal(state.models[0].flat[columns], first[columns])
        assert not torch.equal(state.models[0].flat, first)
    state = rounds[-1][0]
    shares = state.memory["personal"]["rows"].exp()
    assert shares.shape == (len(state.memory["personal"]["owner"]), 3)
    torch.testing.assert_close(shares.sum(dim=1), torch.ones(len(shares)))
    assert len(shares.unique(dim=0)) == len(shares)


@pytest.mark.law("local=fedem", "a client is measured with the global components, mixed by its own shares")
def test_clients_use_their_own_shares(tiny: Tiny):
    world = world_of(tiny(*FEDEM, "rounds=1", "evaluation.personal_fraction=0.3"))
    ((state, _, _),) = rounds_with_rows(world)
    columns, rows = share_columns(world), personal_models(world.exp, world, state, EVERYONE)
    asked = state.memory["personal"]["owner"].numpy()
    assert len(asked) == 3
    assert torch.equal(rows[asked][:, columns], state.memory["personal"]["rows"])
    unasked = np.setdiff1d(EVERYONE, asked)
    torch.testing.assert_close(rows[unasked][:, columns].exp(), torch.full((3, 3), 1 / 3))
    size = world.layout.parameters
    assert torch.equal(rows[:, :size], state.models[0].flat[:size].expand(6, -1))
    weights, x = Weights(rows[asked[0]], world.layout), world.train.inputs(slice(0, 4))
    network = network_of(world, weights.flat)
    expected = sum(pi * h(x).softmax(1) for pi, h in zip(weights.flat[columns].exp(), network.components, strict=True))
    torch.testing.assert_close(world.scorer.logits(weights, x).exp(), expected)


@pytest.mark.usefixtures("_double")
def test_the_engines_agree(tiny: Tiny):
    """Also with momentum, decay, dropout and one example a batch; the received model answers without dropout."""
    words = ("local.momentum=0.5", "local.weight_decay=0.01", "model.component.dropout=0.3", "local.epochs=[1,2]")
    loop, stacked = (
        train_first_round(world_of(tiny(*FEDEM, *words, f"engine={engine}"))) for engine in ("loop", "stacked")
    )
    torch.testing.assert_close(loop, stacked, atol=1e-9, rtol=0, equal_nan=True)


def begun(world: World, owner: np.ndarray, received: torch.Tensor) -> torch.Tensor:
    """The shares `[C, M]` that these clients start from."""
    ctx = context.make_context(world, 1)
    return world.exp.local.begin(received, owner, {}, ctx)[0][:, share_columns(world)].exp()


@pytest.mark.law("local=fedem", "a client's shares do not depend on who else is asked, nor in which order")
def test_order_and_chunks_do_not_matter(tiny: Tiny):
    world = world_of(tiny(*FEDEM))
    received, order = world.first.flat.expand(6, -1), np.array([4, 0, 5, 2, 1, 3])
    together = begun(world, EVERYONE, received)
    torch.testing.assert_close(begun(world, order, received), together[order])
    single = [begun(world, EVERYONE[[client]], received[:1]) for client in EVERYONE]
    torch.testing.assert_close(torch.cat(single), together)
    world.scorer.chunk = 7
    torch.testing.assert_close(begun(world, EVERYONE, received), together)
    assert begun(world, EVERYONE[:0], received[:0]).shape == (0, 3)
    task = first_round(world)
    stack, alone = world.trainer.run(task, np.array([3, 1])), world.trainer.run(task, np.array([1]))
    torch.testing.assert_close(stack[1], alone[0])


def test_clients_that_received_other_components_weigh_those(tiny: Tiny):
    """As with several clusters, or where each client starts from a model of its own."""
    world = world_of(tiny(*FEDEM))
    noise = torch.randn(world.layout.parameters)
    other = world.first.flat.clone()
    other[: world.layout.parameters] += noise
    mixed = torch.stack([world.first.flat, other, world.first.flat])
    shares = begun(world, np.array([0, 1, 2]), mixed)
    torch.testing.assert_close(shares[::2], begun(world, np.array([0, 2]), mixed[::2]))
    torch.testing.assert_close(shares[1:2], begun(world, np.array([1]), mixed[1:2]))
    assert (shares[1] - begun(world, np.array([1]), mixed[:1])[0]).abs().max() > 1e-3
    (*_, (state, _, _)) = rounds_with_rows(world_of(tiny(*FEDEM, *ALL, "clustering=ifca")))
    torch.testing.assert_close(state.memory["personal"]["rows"].exp().sum(dim=1), torch.ones(6))


@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_a_checkpoint_holds_the_shares(tiny: Tiny, tmp_path: Path, engine: str):
    world = world_of(tiny(*FEDEM, "rounds=4", f"engine={engine}"))
    states: list[State] = [state for state, *_ in rounds_with_rows(world)]
    checkpoint.save(tmp_path, states[1], {}, {"name": engine, "reason": ""})
    saved = checkpoint.load(tmp_path, {}, torch.device("cpu"))
    assert saved is not None
    state = saved.state
    for expected in states[2:]:
        state = run_round(world.exp, world, state)[0]
        assert torch.equal(state.models[0].flat, expected.models[0].flat)
        assert same(state.memory["personal"], expected.memory["personal"])


def test_a_training_that_is_not_finite_leaves_the_shares(tiny: Tiny):
    world = world_of(tiny(*FEDEM, *ALL))
    (state, _, _), _ = rounds_with_rows(world)
    wild = world_of(tiny(*FEDEM, *ALL, "local.lr=1e30", "local.epochs=3"))
    after, _, _ = run_round(wild.exp, wild, state)
    assert same(after.memory["personal"], state.memory["personal"])


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            ("model=mlp",),
            "^local=fedem trains the components of a mixture, but model=mlp is none; use model=mixture "
            "model@model.component=mlp$",
        ),
        (
            ("privacy=dp_sgd", "privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3"),
            "^local=fedem makes an example's cost depend on other models or examples, but privacy=dp_sgd protects",
        ),
        (("audit=canaries", "audit.count=60", "audit.score=uploads"), "^local=fedem makes an example's cost depend"),
        (
            ("evaluation.fine_tune_epochs=1", "evaluation.personal_fraction=0.3"),
            "^evaluation.fine_tune_epochs tunes a client's model by the loss of its",
        ),
        (("aggregator=pfnm",), "^local=fedem keeps entries of the network from round to round, but aggregator=pfnm"),
    ],
)
def test_refusals(tiny: Tiny, words: tuple[str, ...], complaint: str):
    with pytest.raises(ConfigError, match=complaint):
        compatibility.refuse(spec.build(tiny("local=fedem", "model=mixture", *words)))


def test_losses_that_are_no_log_probabilities_are_refused(tiny: Tiny):
    exp = spec.build(tiny(*FEDEM))
    compatibility.refuse(exp)
    complaint = "^local=fedem weighs examples by their probabilities, .*; use loss=cross_entropy, or local=sgd$"
    with pytest.raises(ConfigError, match=complaint):
        compatibility.refuse(replace_unchecked(exp, loss=Costing(cost="usual")))
    with pytest.raises(ConfigError, match=complaint):
        compatibility.refuse(spec.build(told(tiny(*FEDEM), "numbers")))
