"""FedALA: a step of the weights by hand, its limits, plain PyTorch on both engines, what is kept and who is refused."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call
from worlds import Tiny, rounds_with_rows, same, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.values import Layout, Plan, State, Trained
from fedexp.parts.context import Context
from fedexp.parts.local.fedala import AggregationWeights, FedALA, MixedNetwork, draw_samples, has_settled, mix
from fedexp.run.state import checkpoint
from fedexp.simulation import context
from fedexp.simulation.local_task import make_task
from fedexp.simulation.measures.own_models import personal_models
from fedexp.simulation.round import run_round
from fedexp.simulation.rounds import run_rounds, with_workers
from fedexp.simulation.setup import compatibility
from fedexp.simulation.world import World
from fedexp.training.client.batches import draw_batches
from fedexp.training.client.phases import Phases

WORDS = ("algorithm=fedala", "model.hidden=[6]", "federation=dirichlet", "federation.alpha=0.5", "local.batch_size=8")
EVERYONE = np.arange(6)
ENGINES = pytest.mark.parametrize("engine", ["loop", "stacked"])
HEAD = 7 * 10  # entries of the last layer


def test_a_step_of_the_weights_by_hand():
    """Of x = 1, y = 3 is wanted; w_i = 2 and w = 6 on top, A = 1/2: w_hat = 4, and the slope of (y - 3)^2 / 2 is 1.

    So A falls by eta (6 - 2) = 4 eta. Below, w = 1 is taken and w_i = 9 is not.
    """
    network = MixedNetwork(nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)), 1)
    layout, row = Layout.of(network), torch.tensor([[0.5, 1.0, 6.0, 9.0, 2.0]])
    assert layout.names == ("weights", "received.0.weight", "received.1.weight", "local")
    network.load_state_dict(layout.views(row[0].clone()))
    answer = network(torch.ones(1, 1))
    assert answer.item() == 4
    loss = (answer - 3).square().sum() / 2
    grads = torch.autograd.grad(loss, list(network.parameters()), materialize_grads=True)
    grad = torch.cat([entry.flatten() for entry in grads])
    assert grad.tolist() == [4, 0, 0]
    rule, trainable = AggregationWeights(eta=0.1), row[:, :3].clone()
    active = Phases(rule, layout, row).moving(torch.zeros(1, 1), torch.ones(1, 1))
    rule.update(trainable, grad[None], torch.zeros(0, 1, 3), torch.tensor(1.0), active)
    assert trainable.tolist() == [[pytest.approx(0.1), 1.0, 6.0]]


@pytest.mark.law("local=fedala", "the weights stay in [0, 1]")
def test_weights_are_cut_off_at_0_and_1():
    rows, grad = torch.tensor([[0.9, 0.2, 0.5], [0.9, 0.2, 0.5]]), torch.tensor([[-2.0, 3.0, 0.25]]).expand(2, -1)
    AggregationWeights(eta=1.0).update(rows, grad, torch.zeros(0), torch.tensor(1.0), torch.tensor([[1.0], [0.0]]))
    assert rows.tolist() == [[1.0, 0.0, 0.25], [pytest.approx(0.9), pytest.approx(0.2), 0.5]]


def test_a_mixture_is_exact_at_both_ends():
    local, received = torch.rand(3, 5), torch.rand(3, 5)
    assert torch.equal(mix(torch.ones(3, 2), local, received), received)
    assert torch.equal(mix(torch.ones(3, 0), local, received), received)
    assert torch.equal(mix(torch.zeros(3, 2), local, received), torch.cat([received[:, :3], local[:, 3:]], dim=1))


def test_when_losses_have_settled():
    """Eleven epochs at least; the last ten count, and what is no number will not settle any more."""
    even = [np.array([5.0, 1.0, np.nan, 2.0])] + [
        np.array([1.0, 1.0 + number % 2, np.nan, 2.0]) for number in range(10)
    ]
    assert not has_settled(even[:-1], 0.1).any()
    assert has_settled(even, 0.1).tolist() == [True, False, True, True]
    assert has_settled(even, 0.6).all()
    assert has_settled(even, 0.0).tolist() == [False, False, True, False]


def starts(world: World, state: State, owner: np.ndarray, number: int = 9) -> tuple[torch.Tensor, torch.Tensor]:
    """What these clients begin a later round from, and their weights."""
    ctx, received = context.make_context(world, number, state.models), state.models[0].flat.expand(len(owner), -1)
    start, anchor = world.exp.local.begin(received, owner, state.memory["local"], ctx)
    return start, anchor[:, -HEAD:]


@pytest.mark.law("local=fedala", "eta = 0 is FedAvg, to the byte")
@pytest.mark.law("local=fedala", "top_layers = 0 is FedAvg, to the byte")
@ENGINES
@pytest.mark.parametrize("limit", ["local.eta=0", "local.top_layers=0", None])
def test_its_limits_are_fedavg_to_the_byte(tiny: Tiny, engine: str, limit: str | None):
    words = (*WORDS[1:], "rounds=4", "local.momentum=0.9", "local.lr=0.02", f"engine={engine}")
    ours = world_of(tiny(WORDS[0], *words, *([limit] if limit else [])))
    fedavg = world_of(tiny("local=sgd", *words, "evaluation.personal_fraction=0.2"))
    rounds = [*zip(rounds_with_rows(ours), rounds_with_rows(fedavg), strict=True)]
    for (mine, _, sent), (theirs, _, sent_theirs) in rounds if limit else []:
        assert torch.equal(sent.delta, sent_theirs.delta)
        assert torch.equal(mine.models[0].flat, theirs.models[0].flat)
        assert torch.equal(personal_models(ours.exp, ours, mine, EVERYONE), theirs.models[0].flat.expand(6, -1))
    (mine, *_), (theirs, *_) = rounds[-1]
    assert torch.equal(mine.models[0].flat, theirs.models[0].flat) == (limit is not None)


@pytest.mark.law("local=fedala", "A = 0 for all layers is training alone, A = 1 is FedAvg, to the byte")
@ENGINES
@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_with_all_weights_0_it_is_training_alone_and_with_1_fedavg(tiny: Tiny, engine: str, weight: float):
    """The weights do not learn, and are put into the memory once every client has a model of its own."""
    words = (*WORDS[1:], "selector=all", "rounds=4", "local.momentum=0.9", f"engine={engine}")
    words = (*words, "evaluation.personal_fraction=0.2")
    ours = world_of(tiny(WORDS[0], *words, "local.top_layers=null", "local.eta=0"))
    alone = world_of(tiny("local=sgd", *words, *["scenario.training=local"] * (weight == 0)))
    columns, state = ours.layout.parameters, ours.initial_state()
    for number, (theirs, *_) in enumerate(rounds_with_rows(alone)):
        state = run_round(ours.exp, ours, state)[0]
        memory = state.memory["local"]
        own_rows = personal_models(alone.exp, alone, theirs, EVERYONE)
        assert torch.equal(memory["rows"], own_rows) or weight == 1
        assert torch.equal(state.models[0].flat, theirs.models[0].flat) or weight == 0
        if number == 0:
            weights = {"owner": torch.arange(6), "rows": torch.full((6, columns), weight)}
            state = replace(state, memory=state.memory | {"local": memory | {"weights": weights}})
            continue
        assert torch.equal(memory["weights"]["rows"], torch.full((6, columns), weight))
        assert torch.equal(personal_models(ours.exp, ours, state, EVERYONE), own_rows)


@ENGINES
def test_lower_layers_are_received_and_weights_are_shares(tiny: Tiny, engine: str):
    world = world_of(tiny(*WORDS, "selector=all", "rounds=3", "local.eta=20", f"engine={engine}"))
    *_, (state, *_) = rounds_with_rows(world)
    stored = state.memory["local"]
    start, weights = starts(world, state, EVERYONE)
    received = state.models[0].flat
    assert torch.equal(start[:, :-HEAD], received[:-HEAD].expand(6, -1))
    assert (start[:, -HEAD:] != received[-HEAD:]).any(dim=1).all()
    for share in (stored["weights"]["rows"], weights):
        assert ((share >= 0) & (share <= 1)).all()
        assert ((share > 0) & (share < 1)).any()
        assert (share == 0).any()
    assert torch.equal(start, mix(weights, stored["rows"], received.expand(6, -1)))


def test_learning_lowers_the_loss_of_the_start(tiny: Tiny):
    world = world_of(tiny(*WORDS, "selector=all", "rounds=3", "federation.alpha=0.1", "local.sample=1"))
    *_, (state, *_) = rounds_with_rows(world)
    (start, _), received = starts(world, state, EVERYONE), state.models[0].flat
    queries = context.make_context(world, 9).audit
    for client in EVERYONE.tolist():
        index = world.shard(client)
        before, after = (
            queries.example_losses(replace(world.first, flat=row), index).mean() for row in (received, start[client])
        )
        assert after < before


@pytest.mark.law("local=fedala", "where a client's own model is what it receives, nothing is mixed or learned")
@pytest.mark.parametrize(("fraction", "size"), [(0.5, 3), (0.1, 1), (1.0, 7), (0.3, 2)])
def test_a_sample_is_rounded_down_but_never_empty(fraction: float, size: int):
    shard = np.arange(10, 17)
    rng = np.random.default_rng(0)
    ctx = SimpleNamespace(plan=lambda owner: Plan(owner, (shard,)), rng=lambda *_: rng)
    (sample,) = draw_samples(np.array([4]), fraction, cast(Context, ctx)).shards
    assert len(sample) == size
    assert sample.tolist() == sorted(set(sample.tolist()) & set(shard.tolist()))


def test_in_the_first_round_nothing_is_done(tiny: Tiny):
    world = world_of(tiny(*WORDS, "selector=all", "rounds=2"))
    first, second = (state.memory["local"] for state, *_ in rounds_with_rows(world))
    assert first["owner"].tolist() == second["weights"]["owner"].tolist() == [*range(6)]
    assert not len(first["weights"]["owner"])

    def refuse(*_: Any) -> None:
        raise AssertionError("nobody learns")

    ctx = cast(Context, SimpleNamespace(layout=world.layout, clients_data=SimpleNamespace(train_wrapped=refuse)))
    for memory in ({}, second):
        received = second["rows"] if memory else world.first.flat.expand(6, -1)
        start, anchor = world.exp.local.begin(received, EVERYONE, memory, ctx)
        assert torch.equal(start, received)
        assert torch.equal(anchor[:, -HEAD:], memory["weights"]["rows"] if memory else torch.ones(6, HEAD))
    with pytest.raises(AssertionError, match="nobody learns"):
        begin_with(world, second, second["rows"] + 1, ctx)


def begin_with(world: World, memory: dict[str, Any], received: torch.Tensor, ctx: Context) -> Any:
    plan = SimpleNamespace(shards=[np.arange(4)] * 6)
    ctx = cast(Context, SimpleNamespace(**vars(ctx), plan=lambda _: plan, rng=lambda *_: np.random.default_rng(0)))
    return world.exp.local.begin(received, EVERYONE, memory, ctx)


class Transcript:
    """Clients of a world in plain PyTorch, with its samples and batches: learning the weights, then SGD."""

    def __init__(self, world: World, number: int) -> None:
        self.world, self.ctx, self.epochs = world, context.make_context(world, number), []
        self.network = world.exp.model.network(world.exp.dataset.facts(world.exp.data_dir)).double()

    def slope(self, row: torch.Tensor, index: np.ndarray) -> tuple[torch.Tensor, float]:
        entries = {name: view.clone().requires_grad_() for name, view in self.world.layout.views(row).items()}
        x, y = (them[torch.from_numpy(index)] for them in (self.world.train.x, self.world.train.y))
        loss = nn.functional.cross_entropy(functional_call(self.network, entries, (x.double(),)), y)
        return torch.cat([grad.flatten() for grad in torch.autograd.grad(loss, list(entries.values()))]), loss.item()

    def learn(self, client: int, a: torch.Tensor, mine: torch.Tensor, w: torch.Tensor, is_new: bool) -> torch.Tensor:
        """The weights of all entries, 1 below the head, after the client's learning."""
        rule, shard = cast(FedALA, self.world.exp.local), self.world.shard(client)
        chosen = self.ctx.rng("aggregation_sample", client).permutation(len(shard))[: max(1, len(shard) // 2)]
        sample, losses = shard[np.sort(chosen)], []
        while True:
            rng = self.ctx.rng("aggregation_weights", len(losses), client)
            batches = draw_batches(rule, len(sample), rng)
            total = 0.0
            for begin, end in zip(batches.bounds[:-1], batches.bounds[1:], strict=True):
                index = sample[batches.order[begin:end]]
                grad, loss = self.slope(mine + (w - mine) * a, index)
                moved = a - rule.eta * grad * (w - mine)
                a = torch.cat([a[:-HEAD], moved[-HEAD:].clip(0, 1)])
                total += loss * len(index) / len(sample)
            losses.append(total)
            if not is_new or (len(losses) > 10 and np.std(losses[-10:]) < rule.tolerance) or len(losses) == 25:
                self.epochs.append(len(losses))
                return a

    def train(self, client: int, row: torch.Tensor, batches: Any) -> torch.Tensor:
        for begin, end in zip(batches.bounds[:-1], batches.bounds[1:], strict=True):
            grad, _ = self.slope(row, self.world.shard(client)[batches.order[begin:end]])
            row = row - self.world.exp.local.lr * grad
        return row


@pytest.mark.law("local=fedala", "a client learns its weights, mixes and trains as the formula does in plain PyTorch")
@pytest.mark.usefixtures("_double")
@ENGINES
def test_a_client_does_what_plain_pytorch_does(tiny: Tiny, engine: str):
    """Clients 0 and 1 have weights, 2 to 4 learn them for the first time, 5 has no model yet."""
    settings = ("local.eta=2", "local.sample=0.5", "local.tolerance=0.015", "local.start_epochs=25", "local.lr=0.3")
    world = world_of(tiny(*WORDS, *settings, f"engine={engine}"))
    size, number = world.layout.size, 3
    noise = torch.randn(7, size, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    w, mine = world.first.flat.double() + 0.3 * noise[6], world.first.flat.double() + 0.3 * noise[:6]
    weights = torch.rand(2, HEAD, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    memory = {"owner": torch.arange(5), "rows": mine[:5], "weights": {"owner": torch.arange(2), "rows": weights}}
    ctx = context.make_context(world, number)
    plan = ctx.plan(EVERYONE)
    batches = tuple(draw_batches(world.exp.local, size, ctx.rng("batches", k)) for k, size in enumerate(plan.sizes))
    task = make_task(world.exp, w.expand(6, -1), plan, batches, memory, ctx)
    out = torch.zeros(6, 2 * size + 2, dtype=torch.float64)
    for rows in world.trainer.groups(task, 1):
        out[rows] = world.trainer.run(task, rows)
    transcript = Transcript(world, number)
    for client in range(6):
        a = torch.ones(size, dtype=torch.float64)
        if client < 2:
            a[-HEAD:] = weights[client]
        a = transcript.learn(client, a, mine[client], w, client > 1) if client < 5 else a
        start = mine[client] + (w - mine[client]) * a
        for ours, formula in (
            (task.start[client], start),
            (out[client, :size], transcript.train(client, start, batches[client])),
            (out[client, 2 * size - HEAD : 2 * size], a[-HEAD:]),
        ):
            torch.testing.assert_close(ours, formula, rtol=1e-6, atol=1e-9)
    assert transcript.epochs[:2] == [1, 1]
    assert min(transcript.epochs[2:]) >= 11
    assert len({*transcript.epochs[2:]}) > 1


@ENGINES
def test_a_client_does_not_depend_on_who_else_learns(tiny: Tiny, engine: str):
    world = world_of(tiny(*WORDS, "selector=all", "rounds=2", f"engine={engine}"))
    *_, (state, *_) = rounds_with_rows(world)
    together = starts(world, state, EVERYONE)
    for owner in (EVERYONE[::-1].copy(), np.array([4, 1])):
        for some, all_rows in zip(starts(world, state, owner), together, strict=True):
            assert torch.equal(some, all_rows[torch.from_numpy(owner)])
    small = world_of(tiny(*WORDS, "selector=all", "rounds=2", f"engine={engine}", "engine.memory_mb=0.001"))
    for some, all_rows in zip(starts(small, state, EVERYONE), together, strict=True):
        assert torch.equal(some, all_rows)


def test_two_workers_do_what_one_does(tiny: Tiny):
    ends = []
    for workers in (1, 2):
        world = world_of(tiny(*WORDS, "rounds=3", f"engine.workers={workers}"))
        with with_workers(world.exp, world, world.initial_state()) as crew:
            *_, (state, row, _) = run_rounds(world.exp, crew, crew.initial_state())
        ends.append((state.memory["local"], row["personal_accuracy"]))
    assert same(ends[0][0], ends[1][0])
    assert ends[0][1] == ends[1][1]
    assert len(ends[0][0]["weights"]["owner"])


def test_engines_agree_and_a_checkpoint_goes_on_to_the_byte(tiny: Tiny, tmp_path: Path):
    ends: list[State] = []
    for engine in ("loop", "stacked"):
        world = world_of(tiny(*WORDS, "rounds=4", f"engine={engine}"))
        states = [state for state, *_ in rounds_with_rows(world)]
        for number in (1, 2):
            checkpoint.save(tmp_path, states[number - 1], {}, {"name": engine, "reason": ""})
            saved = checkpoint.load(tmp_path, {}, torch.device("cpu"))
            assert saved is not None
            following = run_round(world.exp, world, saved.state)[0]
            assert same(following.memory["local"], states[number].memory["local"])
        ends.append(states[-1])
    first, second = (state.memory["local"] for state in ends)
    assert first["weights"]["owner"].tolist() == second["weights"]["owner"].tolist() != []
    torch.testing.assert_close(first["rows"], second["rows"], rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(first["weights"]["rows"], second["weights"]["rows"], rtol=1e-3, atol=1e-4)


@pytest.mark.law("local=fedala", "a client uses the mixture of its own model and the global one by its last weights")
def test_a_client_uses_its_mixture(tiny: Tiny):
    world = world_of(tiny(*WORDS, "rounds=3", "scenario.participants=2"))
    *_, (state, *_) = rounds_with_rows(world)
    stored, received = state.memory["local"], state.models[0].flat
    learners = stored["weights"]["owner"]
    assert 0 < len(learners) < len(stored["owner"]) < 6
    models = personal_models(world.exp, world, state, EVERYONE)
    for client in EVERYONE.tolist():
        if client not in learners:
            assert torch.equal(models[client], received)
            continue
        a, mine = stored["weights"]["rows"][learners == client][0], stored["rows"][stored["owner"] == client][0]
        assert torch.equal(models[client, :-HEAD], received[:-HEAD])
        torch.testing.assert_close(models[client, -HEAD:], mine[-HEAD:] + (received - mine)[-HEAD:] * a)


def test_what_is_not_finite_leaves_what_was_before():
    def train_wrapped(_: Any, rows: torch.Tensor, __: Plan, ___: str, epoch: int) -> tuple[torch.Tensor, np.ndarray]:
        rows[:, 0] = torch.tensor([torch.nan, 0.25])[: len(rows)]
        return rows, np.full(len(rows), float(epoch))

    plan = Plan(np.array([3, 5]), (np.arange(4), np.arange(4, 9)))
    ctx = SimpleNamespace(
        plan=lambda _: plan,
        rng=lambda *_: np.random.default_rng(0),
        clients_data=SimpleNamespace(train_wrapped=train_wrapped),
    )
    rows, start = torch.ones(2, 5), np.zeros(2, dtype=bool)
    assert FedALA().learn(rows, plan.owner, start, cast(Context, ctx))[:, 0].tolist() == [1.0, 0.25]
    layout = Layout(("a", "b"), ((2,), (1,)), 2)
    ends, received, owner = torch.tensor([[1.0, torch.inf, 0.0], [1.0, 2.0, 3.0]]), torch.zeros(2, 3), np.array([0, 1])
    memory = {"owner": torch.tensor([0, 1]), "rows": torch.ones(2, 3)}
    trained = Trained(owner, owner + 1, received, received, ends.clone(), torch.tensor([[0, 0, 0.5], [0, 0, 0.75]]))
    _, after = FedALA(top_layers=None).finish(trained, memory, cast(Context, SimpleNamespace(layout=layout)))
    assert after["rows"].tolist() == [[1, 1, 1], [1, 2, 3]]
    assert after["weights"]["owner"].tolist() == [1]
    assert after["weights"]["rows"].tolist() == [[0, 0, 0.75]]


def test_layers_are_counted_from_the_last():
    layout = Layout(("a.weight", "a.bias", "b.c.weight", "b.d.weight", "b.d.bias"), ((2, 3), (2,), (5,), (4,), (1,)), 5)
    assert [AggregationWeights(top_layers=layers).weights(layout) for layers in (0, 1, 2, 3, None)] == [
        0,
        5,
        10,
        18,
        18,
    ]


def test_the_weights_are_learned_on_all_batches_with_no_setting_of_the_training():
    rule = FedALA(epochs=None, steps=7, batch_size=4, drop_last=True, clip_norm=1.0, eta=3.0, top_layers=2).weight_rule
    assert rule == AggregationWeights(epochs=1, steps=None, batch_size=4, eta=3.0, top_layers=2)


def test_the_clock_counts_an_epoch_of_the_weights():
    assert FedALA(epochs=2, sample=0.5).passes(np.array([8, 9])).tolist() == [2.5, 2.5]
    assert FedALA(epochs=2, top_layers=0).passes(np.array([8])).tolist() == [2]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            ("model=complex_cnn", "dataset.shape=[1,8,8]"),
            "local=fedala mixes two models entry by entry, but model=compl",
        ),
        (
            ("local.top_layers=3",),
            r"local\.top_layers must be at most 2, the number of layers of model=mlp \(.*\), got 3",
        ),
        (
            ("privacy=dp_sgd", "privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3"),
            "local=fedala fits what a client starts from to its examples, but privacy=dp_sgd clips what they do to the",
        ),
        (
            ("aggregator=fednova",),
            "aggregator=fednova divides each update by the weights of its gradients, but local=fed",
        ),
        (("evaluation.fine_tune_epochs=1",), "evaluation.fine_tune_epochs tunes a client's model by the loss"),
        (("local.sample=0",), r"sample must be a number in \(0, 1\]"),
    ],
)
def test_refusals(tiny: Tiny, words: tuple[str, ...], complaint: str):
    hidden = () if "model=complex_cnn" in words else WORDS[1:2]
    with pytest.raises(ConfigError, match=complaint):
        compatibility.refuse(spec.build(tiny(WORDS[0], *hidden, *words)))
