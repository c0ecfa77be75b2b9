"""All engines give one result: the loop equals plain PyTorch, the stack and the workers equal the loop."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from composing import options
from torch.nn import functional as F
from worlds import Tiny, world_of

from fedexp.core.device_arrays import as_matrix
from fedexp.core.errors import RunError
from fedexp.core.values import Layout, Plan
from fedexp.parts.local.sgd import SGD
from fedexp.process.user_code_errors import explain_in_one_line
from fedexp.simulation import context
from fedexp.simulation.round import run_round
from fedexp.simulation.rounds import run_rounds, with_workers
from fedexp.simulation.world import World
from fedexp.training.client.batches import draw_batches
from fedexp.training.client.recipe import Recipe
from fedexp.training.loop.trainer import LoopTrainer, Task
from fedexp.training.stacked.trainer import StackedTrainer

pytestmark = pytest.mark.usefixtures("_narrow")
MODELS = {
    "mlp": "[12]",
    "simple_cnn": "[3,8,8]",
    "complex_cnn": "[1,16,16]",
    "complex_cnn model.norm=group": "[1,8,8]",
    "keras_cnn": "[1,8,8]",
    "har_cnn": "[3,16]",
}
DEEP = ("complex_cnn", "complex_cnn model.norm=group")  # seconds a case: only with what meets their layers otherwise
RULES = {
    "sgd": (),
    "momentum": ("local.momentum=0.9", "local.weight_decay=0.01"),
    "adam": ("local=adam", "local.epochs=2"),
    "prox": ("local=prox", "local.mu=0.5"),
    "full": ("local=full_batch_step",),
    "steps": ("local.epochs=null", "local.steps=7"),
    "fedplus": ("algorithm=fedplus", "local.mixing=0.3"),
    "fedplus_epoch": ("algorithm=fedplus", "local.mix=epoch", "local.epochs=2", "local.penalty=l1"),
    "scaffold": ("algorithm=scaffold", "local.epochs=2"),
    "scaffold_momentum": ("algorithm=scaffold", "local.epochs=2", "local.momentum=0.9", "local.clip_norm=0.5"),
    "prox_adamw": ("local=prox", "local.mu=0.5", "local.optimizer=adamw", "local.lr=0.01", "local.weight_decay=0.1"),
    "worker_momentum": (
        "local.momentum=0.9",
        "local.worker_momentum=true",
        "local.nesterov=true",
        "local.epochs=[1,3]",
    ),
    "personal_layer": ("local=personal_layer", "local.momentum=0.9"),
}
NARROW = ("scaffold_momentum", "prox_adamw", "worker_momentum")  # what layers they move makes no difference
PAIRS = [
    *(("mlp", rule) for rule in RULES),
    *(("simple_cnn", rule) for rule in RULES if rule not in NARROW),
    *((model, rule) for model in ("keras_cnn", "har_cnn") for rule in ("sgd", "momentum", "personal_layer")),
    *((DEEP[0], rule) for rule in ("sgd", "fedplus_epoch", "scaffold", "personal_layer")),  # buffers are kept or sent
    *((DEEP[1], rule) for rule in ("adam", "steps")),
]


def words(model: str, *more: str) -> tuple[str, ...]:
    dropout = ("model.dropout=0",) if model == "keras_cnn" else ()
    # 20 examples each in batches of 8: the padded last batch has 4, enough for BatchNorm to be well conditioned
    sizes = ("local.batch_size=8",) if "local=full_batch_step" not in more else ()
    return (*f"model={model}".split(), f"dataset.shape={MODELS[model]}", *sizes, *dropout, *more)


def last(config: dict[str, Any]) -> tuple[list[dict[str, Any]], torch.Tensor]:
    """Every row of the metrics, and the last model."""
    world = world_of(config)
    exp = world.exp
    with with_workers(exp, world, world.initial_state()) as world:
        lived = list(run_rounds(exp, world, world.initial_state()))
    return [row for _, row, _ in lived], lived[-1][0].models[0].flat


def same(one: list[dict[str, Any]], other: list[dict[str, Any]], tolerance: float) -> None:
    for left, right in zip(one, other, strict=True):
        for name in ("test_loss", "test_accuracy", "train_loss", "participants", "examples"):
            assert left[name] == pytest.approx(right[name], abs=tolerance, rel=0), name


def prepared(config: dict[str, Any]) -> tuple[World, Task]:
    """A world and the task of its first round, with clients of different sizes."""
    world = world_of(config)
    exp = world.exp
    plan = context.make_context(world, 1).plan(np.arange(world.partition.clients))
    batches = tuple(
        draw_batches(exp.local, len(shard), context.make_context(world, 1).rng("batches", client))
        for client, shard in enumerate(plan.shards)
    )
    received = world.first.flat.expand(len(plan.owner), -1)
    start, anchor = exp.local.begin(received, plan.owner, {}, context.make_context(world, 1))
    return world, Task(start, anchor, plan, batches, 0, 1)


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("model", MODELS)
def test_loop_equals_plain_pytorch(tiny: Tiny, model: str, optimizer: str):
    world, task = prepared(tiny(*words(model, f"local={optimizer}", "federation=dirichlet", "federation.alpha=1")))
    network = world.exp.model.network(world.exp.dataset.facts(world.exp.data_dir))
    out = world.trainer.run(task, np.arange(len(task.batches)))
    x, y = world.train.x, world.train.y
    if world.train.images:
        x = x.permute(0, 3, 1, 2)
    for row, batches in enumerate(task.batches):
        network.load_state_dict(world.layout.views(world.first.flat.clone()), strict=False)
        network.train()
        make = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[optimizer]
        descend = make(network.parameters(), lr=world.exp.local.lr)
        for a, b in zip(batches.bounds[:-1], batches.bounds[1:], strict=True):
            index = torch.from_numpy(task.plan.shards[row][batches.order[a:b]])
            descend.zero_grad()
            F.cross_entropy(network(x[index].double().contiguous()), y[index]).backward()
            descend.step()
        torch.testing.assert_close(out[row, :-2], world.layout.flatten(network), atol=1e-8, rtol=0)


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize(("model", "rule"), PAIRS)
def test_stacked_is_the_same_mathematics_as_loop(tiny: Tiny, model: str, rule: str):
    loop, row = last(tiny(*words(model, *RULES[rule])))
    stacked, stacked_row = last(tiny(*words(model, *RULES[rule], "engine=stacked")))
    same(loop, stacked, 1e-9)
    torch.testing.assert_close(stacked_row, row, atol=1e-8, rtol=0)


class OwnRule(SGD):
    """Freezes rows as the template for rules of one's own does."""

    def update(
        self, w: torch.Tensor, grad: torch.Tensor, slots: torch.Tensor, step: torch.Tensor, active: torch.Tensor | None
    ) -> None:
        w.sub_(grad * (self.lr if active is None else self.lr * active))


@pytest.mark.parametrize("rule", [SGD(lr=1e25, batch_size=8), OwnRule(lr=1e25, batch_size=8)], ids=["sgd", "own"])
def test_a_row_that_is_done_does_not_overflow_in_the_steps_of_others(tiny: Tiny, rule: SGD):
    """After one step of such a rate a row is finite, after two it is not: so it ends in both engines."""
    world, task = prepared(tiny("dataset.shape=[12]"))
    shards = tuple(np.arange(size) for size in (16, 8))
    batches = tuple(draw_batches(rule, len(shard), np.random.default_rng(0)) for shard in shards)
    task = replace(task, start=task.start[:2], anchor=task.anchor[:2], plan=Plan(np.arange(2), shards), batches=batches)
    recipe, ends = Recipe(world.exp.loss, rule, world.exp.privacy, 4), []
    for engine in (LoopTrainer, StackedTrainer):
        parts = world.trainer_spec.build_network(), world.layout, world.train, recipe
        trainer = StackedTrainer(*parts, 64.0) if engine is StackedTrainer else LoopTrainer(*parts)
        ends.append(trainer.run(task, np.arange(2)))
    for end in ends:
        assert end.isfinite().all(dim=1).tolist() == [False, True]
    torch.testing.assert_close(ends[0][1], ends[1][1], rtol=1e-5, atol=0)


def short_of_memory(monkeypatch: pytest.MonkeyPatch, most: int) -> list[int]:
    """From now on more than `most` rows at once do not fit; returns the numbers of rows that are tried."""
    tried, train = [], StackedTrainer._run

    def run(self: StackedTrainer, task: Task, rows: np.ndarray) -> torch.Tensor:
        tried.append(len(rows))
        if len(rows) > most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return train(self, task, rows)

    monkeypatch.setattr(StackedTrainer, "_run", run)
    return tried


def test_what_does_not_fit_is_halved(tiny: Tiny, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    world, task = prepared(tiny(*words("mlp"), "engine=stacked"))
    rows = np.arange(len(task.plan.shards))
    whole = world.trainer.run(task, rows)
    tried = short_of_memory(monkeypatch, 3)
    torch.testing.assert_close(world.trainer.run(task, rows), whole)
    torch.testing.assert_close(world.trainer.run(task, rows), whole)
    assert tried == [6, 3, 3, 3, 3]
    assert caplog.text.count("too small for") == 1


def test_halves_are_halved_until_they_fit(tiny: Tiny, monkeypatch: pytest.MonkeyPatch):
    world, task = prepared(tiny(*words("mlp"), "engine=stacked"))
    rows = np.arange(len(task.plan.shards))
    whole = world.trainer.run(task, rows)
    tried = short_of_memory(monkeypatch, 1)
    torch.testing.assert_close(world.trainer.run(task, rows), whole)
    assert tried == [6, 3, 2, *[1] * 6]


def test_one_client_that_does_not_fit_says_what_can_be_done(tiny: Tiny, monkeypatch: pytest.MonkeyPatch):
    world, task = prepared(tiny(*words("mlp"), "engine=stacked"))
    tried = short_of_memory(monkeypatch, 0)
    cure = r"continue with fedexp resume, or begin a run with engine\.memory_mb below 1024, a smaller local\.batch_size"
    with pytest.raises(
        RunError, match=rf"for 1 client\(s\) at once: CUDA out of memory.*; end what else uses it and {cure}"
    ):
        world.trainer.run(task, np.arange(len(task.plan.shards)))
    assert tried == [6, 3, 2, 1]


def test_memory_that_ends_where_halves_are_joined_names_the_key(tiny: Tiny, monkeypatch: pytest.MonkeyPatch):
    world, task = prepared(tiny(*words("mlp"), "engine=stacked"))
    short_of_memory(monkeypatch, 3)
    cat = torch.cat

    def join(tensors: list[torch.Tensor], dim: int | None = None) -> torch.Tensor:
        if dim is None and [len(tensor) for tensor in tensors] == [3, 3]:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return cat(tensors, dim=dim or 0)

    monkeypatch.setattr(torch, "cat", join)
    with pytest.raises(RunError, match=r"too small for 6 client.*engine\.memory_mb below"):
        world.trainer.run(task, np.arange(len(task.plan.shards)))


def test_a_gpu_without_memory_does_not_choose_the_loop(tiny: Tiny, monkeypatch: pytest.MonkeyPatch):
    short_of_memory(monkeypatch, 0)
    with pytest.raises(RunError, match="the GPU's memory is too small"):
        world_of(tiny(*words("mlp"), "engine=stacked"))


@pytest.mark.parametrize("engine", ["stacked", "auto"])
def test_nor_does_one_whose_memory_ends_before_the_first_step(tiny: Tiny, monkeypatch: pytest.MonkeyPatch, engine: str):
    def fail(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    monkeypatch.setattr(StackedTrainer, "__init__", fail)
    monkeypatch.setattr("fedexp.training.engine.contract.MIN_PARTICIPANTS", 1)
    with pytest.raises(torch.OutOfMemoryError) as raised:
        world_of(tiny(*words("mlp"), f"engine={engine}"))
    line = explain_in_one_line(raised.value)
    assert line is not None
    assert re.search(
        "memory is too small: CUDA out .* GiB; end what else uses it and continue with fedexp resume", line
    )


def test_a_padded_example_is_never_a_strangers(tiny: Tiny):
    """Example 0 overflows the network; a client that does not hold it does not see it, whatever is padded."""
    for model in ("mlp", "complex_cnn"):
        world, task = prepared(tiny(*words(model)))
        world.train.x[0] = 1e38
        rows = np.array([row for row, shard in enumerate(task.plan.shards) if 0 not in shard])
        recipe = Recipe(world.exp.loss, world.exp.local, world.exp.privacy, 4)
        network = world.trainer_spec.build_network()
        out = StackedTrainer(network, world.layout, world.train, recipe, 64.0).run(task, rows)
        assert out.isfinite().all()


@pytest.mark.parametrize(
    ("model", "rule"),
    [("mlp", "momentum"), ("mlp", "full"), *(pair for pair in PAIRS if pair[1] == "sgd")],
)
def test_stacked_equals_loop_in_single_precision(tiny: Tiny, model: str, rule: str):
    loop, _ = last(tiny(*words(model, *RULES[rule])))
    stacked, _ = last(tiny(*words(model, *RULES[rule], "engine=stacked")))
    same(loop, stacked, 1e-4)


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
@pytest.mark.parametrize("model", ["mlp", "complex_cnn"])
def test_unequal_clients_padding_and_buckets(tiny: Tiny, model: str, engine: str):
    sizes = ("federation=dirichlet", "federation.alpha=2", "federation.min_size=9", "scenario.participants=6")
    loop, _ = last(tiny(*words(model, *sizes)))
    small, _ = last(
        tiny(*words(model, *sizes), f"engine={engine}", "engine.memory_mb=0.001", "engine.evaluation_chunk=7")
    )
    same(loop, small, 1e-9)


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
@pytest.mark.parametrize("model", ["mlp", "complex_cnn", "keras_cnn"])  # without and with buffers, with dropout
def test_two_workers_equal_one(tiny: Tiny, model: str, engine: str):
    one, model_of_one = last(tiny(*words(model), f"engine={engine}"))
    two, model_of_two = last(tiny(*words(model), f"engine={engine}", "engine.workers=2"))
    same(one, two, 0 if engine == "loop" else 1e-9)
    if engine == "loop":
        assert torch.equal(model_of_one, model_of_two)


@pytest.mark.parametrize(
    "words",
    [
        ("dataset.shape=[1,28,28]", "model=mlp"),
        ("dataset.shape=[1,28,28]", "model=simple_cnn"),
        ("dataset.shape=[1,28,28]", "model=keras_cnn"),
        ("dataset.shape=[1,28,28]", "model=simple_cnn", "local=moon"),
        ("dataset.shape=[3,32,32]", "model=simple_cnn"),
        ("dataset.shape=[3,32,32]", "model=complex_cnn"),
    ],
    ids=" ".join,
)
def test_stacked_clients_have_the_same_bits_on_any_number_of_workers(tiny: Tiny, words: tuple[str, ...]):
    """Ten clients, of different numbers of steps, so that some are alone among those that would share a group."""
    sizes = ("federation=dirichlet", "federation.alpha=1", "federation.min_size=5", "scenario.clients=10")
    shared = ("dataset=synthetic", "dataset.train_size=250", "engine=stacked", "scenario.participants=10", "rounds=1")
    configs = (tiny(*shared, *words, *sizes, f"engine.workers={workers}") for workers in (1, 2, 3, 5))
    first, *others = (last(config)[1] for config in configs)
    assert all(torch.equal(first, other) for other in others)


DP_SGD = ("privacy=dp_sgd", "privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3")


@pytest.mark.parametrize(
    "words",
    [
        ("local.batch_size=full",),
        ("local.batch_size=full", "local=scaffold"),
        ("local.batch_size=full", *DP_SGD),
        ("local.batch_size=20", *DP_SGD),
        ("local.batch_size=150", "local.epochs=2"),
        ("local.batch_size=37", "local.epochs=2"),
    ],
    ids=" ".join,
)
def test_stacked_batches_of_unequal_widths_have_the_same_bits_in_any_groups(tiny: Tiny, words: tuple[str, ...]):
    """Sixteen clients of 2 to 1,000 examples; how far the batches of one are padded must not depend on its group."""
    sizes = ("federation=sizes", "federation.growth=exponential", "scenario.clients=16", "scenario.participants=16")
    data = ("dataset=synthetic", "dataset.shape=[28,28]", "dataset.train_size=2000", "dataset.test_size=20")
    shared = (*data, *sizes, *words, "engine=stacked", "rounds=2")
    ways = ("engine.workers=1", "engine.workers=2", "engine.workers=3", "engine.memory_mb=20")
    (rows, first), *others = (last(tiny(*shared, way)) for way in ways)
    for other_rows, other in others:
        assert torch.equal(first, other)
        same(rows, other_rows, 0)


@pytest.mark.parametrize("rule", ["fedplus", "fedplus_epoch", "scaffold", "personal_layer"])
def test_two_workers_equal_one_where_clients_keep_rows(tiny: Tiny, rule: str):
    buffers = ("model.buffers=local", "evaluation.personal_fraction=0.3")
    one, model_of_one = last(tiny(*words("complex_cnn", *RULES[rule], *buffers)))
    two, model_of_two = last(tiny(*words("complex_cnn", *RULES[rule], *buffers, "engine.workers=2")))
    same(one, two, 0)
    for name in ("personal_accuracy", "personal_worst_decile"):
        assert [row[name] for row in one] == [row[name] for row in two]
    assert torch.equal(model_of_one, model_of_two)


@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_more_workers_than_clients(tiny: Tiny, engine: str):
    words = (f"engine={engine}", "scenario.participants=2", "stop=target", "stop.value=1")
    one, _ = last(tiny(*words))
    three, _ = last(tiny(*words, "engine.workers=3"))
    same(one, three, 1e-4)


@pytest.mark.parametrize("engine", ["loop", "stacked"])
@pytest.mark.parametrize("model", ["keras_cnn", "complex_cnn"])
def test_two_runs_are_bit_identical(tiny: Tiny, model: str, engine: str):
    first, second = (last(tiny(f"model={model}", "dataset.shape=[1,8,8]", f"engine={engine}"))[1] for _ in range(2))
    assert torch.equal(first, second)


@pytest.mark.parametrize("engine", ["loop", "stacked"])
@pytest.mark.parametrize("rule", ["sgd", "fedplus_epoch", "scaffold"])
def test_order_of_clients_does_not_matter(tiny: Tiny, engine: str, rule: str):
    world, task = prepared(tiny("federation=dirichlet", "federation.alpha=1", f"engine={engine}", *RULES[rule]))
    order = np.array([3, 0, 5, 1, 4, 2])
    turned = Task(
        as_matrix(task.start)[order],
        as_matrix(task.anchor)[order],
        Plan(task.plan.owner[order], tuple(task.plan.shards[row] for row in order)),
        tuple(task.batches[row] for row in order),
        0,
        1,
    )
    straight = world.trainer.run(task, np.arange(6))
    torch.testing.assert_close(world.trainer.run(turned, np.arange(6)), straight[torch.from_numpy(order)])


def test_dropout_of_a_client_does_not_depend_on_its_neighbours(tiny: Tiny):
    world, task = prepared(tiny("model=keras_cnn", "dataset.shape=[1,8,8]"))
    assert torch.equal(world.trainer.run(task, np.array([1, 4]))[1], world.trainer.run(task, np.array([4]))[0])


def test_large_clients_are_normalised_in_the_batch(tiny: Tiny, monkeypatch: pytest.MonkeyPatch):
    world, task = prepared(tiny("dataset.shape=[3,8,8]", "model=simple_cnn"))
    cached = world.trainer.run(task, np.arange(3))
    monkeypatch.setattr("fedexp.training.loop.trainer.CACHED_FLOATS", 0)
    assert torch.equal(world.trainer.run(task, np.arange(3)), cached)


def test_groups_of_the_stack_cover_all_rows_within_the_bound(tiny: Tiny):
    world, task = prepared(tiny("federation=dirichlet", "federation.alpha=0.3", "engine=stacked"))
    assert isinstance(world.trainer, StackedTrainer)
    steps = np.array([batches.steps for batches in task.batches])
    for workers in (1, 2, 4):
        groups = world.trainer.groups(task, workers)
        assert sorted(np.concatenate(groups).tolist()) == list(range(6))
        assert all(steps[rows].max() <= 2 * max(1, steps[rows].min()) for rows in groups)
    assert len(world.trainer.groups(task, 6)) == 6


def test_a_client_without_examples_sends_nothing_and_weighs_nothing(tiny: Tiny):
    for engine in ("loop", "stacked"):
        config = tiny("dataset.classes=2", "dataset.train_size=4", "scenario.participants=6", f"engine={engine}")
        world = world_of(config)
        state, row, sent = run_round(world.exp, world, world.initial_state())
        empty = sent.examples == 0
        assert empty.sum() == 2
        assert not sent.delta[torch.from_numpy(empty)].any()
        assert np.isnan(sent.loss_after[empty]).all()
        assert row["examples"] == 4
        assert state.models[0].flat.isfinite().all()


def test_exact_client_losses_are_those_of_the_models(tiny: Tiny):
    config = tiny("evaluation.client_losses=exact")
    world = world_of(config)
    _, _, sent = run_round(world.exp, world, world.initial_state())
    network = world.exp.model.network(world.exp.dataset.facts(world.exp.data_dir)).eval()
    assert sent.exact is not None
    for position, client in enumerate(sent.owner):
        index = torch.from_numpy(world.partition.shard(client))
        for flat, told in (
            (world.first.flat, sent.exact[position, 0]),
            (world.first.flat + sent.delta[position], sent.exact[position, 1]),
        ):
            network.load_state_dict(world.layout.views(flat), strict=False)
            with torch.no_grad():
                loss = F.cross_entropy(network(world.train.inputs(index)), world.train.y[index])
            assert told == pytest.approx(float(loss), abs=1e-5)


MANY = ("scenario.clients=32", "scenario.participants=32")


@pytest.mark.parametrize(
    ("words", "name", "reason"),
    [
        ((), "loop", "on a CPU, fewer than 32 participants"),
        (MANY, "stacked", "on a CPU, at least 32 participants and at most 20,000 parameters"),
        ((*MANY, "model.hidden=[2000]"), "loop", "on a CPU, more than 20,000 parameters"),
        (
            (*MANY, "model=simple_cnn", "dataset.shape=[1,8,8]"),
            "loop",
            "a CPU runs stacked convolutions slower than one client after another",
        ),
    ],
)
def test_auto_follows_from_the_config(tiny: Tiny, words: tuple[str, ...], name: str, reason: str):
    choice = world_of(tiny("engine=auto", *words)).choice
    assert (choice.name, choice.reason) == (name, reason)


@pytest.mark.parametrize(("engine", "kind"), [("loop", LoopTrainer), ("stacked", StackedTrainer)])
def test_the_first_step_is_made_before_the_clock_runs(
    tiny: Tiny, engine: str, kind: type[LoopTrainer | StackedTrainer], monkeypatch: pytest.MonkeyPatch
):
    run, made = kind.run, []
    monkeypatch.setattr(kind, "run", lambda self, task, rows: made.append(self) or run(self, task, rows))
    assert world_of(tiny(f"engine={engine}")).trainer in made


@pytest.mark.usefixtures("_double")
def test_dropout_is_the_same_in_both_engines(tiny: Tiny):
    unequal = ("federation=dirichlet", "federation.alpha=1", "local.batch_size=8", "model=keras_cnn")
    loop, row = last(tiny(*unequal, "dataset.shape=[1,8,8]"))
    stacked, stacked_row = last(tiny(*unequal, "dataset.shape=[1,8,8]", "engine=stacked"))
    same(loop, stacked, 1e-9)
    torch.testing.assert_close(stacked_row, row, atol=1e-8, rtol=0)


def test_layout_is_shared_by_both_trainers(tiny: Tiny):
    world, task = prepared(tiny("model=complex_cnn", "dataset.shape=[1,16,16]", "local.batch_size=8"))
    assert isinstance(world.trainer, LoopTrainer)
    facts = world.exp.dataset.facts(world.exp.data_dir)
    network = world.exp.model.network(facts)
    assert Layout.of(network) == world.layout
    recipe = Recipe(world.exp.loss, world.exp.local, world.exp.privacy, facts.classes)
    stacked = StackedTrainer(network, world.layout, world.train, recipe, 512)
    rows = np.arange(2)
    torch.testing.assert_close(stacked.run(task, rows), world.trainer.run(task, rows), atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("option", options("engine"))
def test_every_engine_names_itself_and_the_reason(tiny: Tiny, option: str):
    world = world_of(tiny(f"engine={option}", "engine.workers=1"))
    assert world.choice.name in ("loop", "stacked")
    assert world.choice.reason
