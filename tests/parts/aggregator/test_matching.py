"""PFNM and SPAHM in rounds: the model grows, clients keep their units, stops and workers change nothing."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from worlds import world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.values import SERVER, State, Uploads
from fedexp.run.state import checkpoint
from fedexp.run.tables import TIMINGS
from fedexp.simulation import context
from fedexp.simulation.checks.pending_checks import PendingChecks
from fedexp.simulation.round import Row, fold, run_round
from fedexp.simulation.rounds import run_rounds, with_workers
from fedexp.simulation.setup import compatibility
from fedexp.simulation.start import dispatch
from fedexp.simulation.world import World

Tiny = Callable[..., dict[str, Any]]
SKEWED = ("federation=dirichlet", "federation.alpha=0.3", "federation.min_size=4", "local=adam", "local.lr=0.05")
PFNM = ("aggregator=pfnm", "aggregator.s=0.1", "aggregator.gamma=5", "model.hidden=[5]", *SKEWED)
DEEP = ("aggregator=pfnm", "aggregator.s=[0.1,0.2]", "aggregator.gamma=5", "model.hidden=[5,4]", *SKEWED)
SPAHM = ("aggregator=spahm", "aggregator.gamma=50", "model.hidden=[5]", *SKEWED, "local.epochs=10")
ALL = pytest.mark.parametrize("words", [PFNM, DEEP, SPAHM], ids=["pfnm", "deep", "spahm"])


def live(world: World, state: State, upto: int) -> tuple[list[tuple[Row, State, Uploads]], State]:
    """The rounds until `upto`, and the state after them."""
    lived: list[tuple[Row, State, Uploads]] = []
    with with_workers(world.exp, world, state) as crewed:
        for after, row, sent in run_rounds(world.exp, crewed, state):
            lived.append((row, after, sent))
            if after.round == upto:
                return lived, after
    raise AssertionError


def same(one: list[tuple[Row, State, Uploads]], other: list[tuple[Row, State, Uploads]]) -> None:
    for (row, state, sent), (twin, state_too, sent_too) in zip(one, other, strict=True):
        assert {n: v for n, v in row.items() if n not in TIMINGS} == {n: v for n, v in twin.items() if n not in TIMINGS}
        assert state.models[0].layout == state_too.models[0].layout
        assert torch.equal(state.models[0].flat, state_too.models[0].flat)
        assert (sent.owner == sent_too.owner).all()


@ALL
def test_three_rounds_in_which_widths_grow(tiny: Tiny, words: tuple[str, ...]):
    world = world_of(tiny(*words, "rounds=3"))
    lived, last = live(world, world.initial_state(), 3)
    network = world.exp.model.network(world.exp.dataset.facts(world.exp.data_dir))
    assert isinstance(network, torch.nn.Sequential)
    hidden = len(network[1::2]) - 1
    for row, state, sent in lived:
        widths = [row[f"aggregator.width_{number}"] for number in range(1, hidden + 1)]
        assert widths == [shape[0] for shape in state.models[0].layout.shapes[1:-2:2]]
        assert all(width > own[0] for width, own in zip(widths, world.layout.shapes[1:-2:2], strict=True))
        assert sent.delta.shape == (3, 0)
        assert row["mb_down"] == row["mb_up"] == pytest.approx(3 * 4 * world.layout.size / 1e6)
    assert lived[-1][0]["test_loss"] == pytest.approx(slow_loss(world, last))


def slow_loss(world: World, state: State) -> float:
    """The whole model's loss on the test data, layer by layer."""
    entries = list(state.models[0].layout.views(state.models[0].flat).values())
    x = world.test.inputs(slice(None)).flatten(1)
    for weight, bias in zip(entries[:-2:2], entries[1:-2:2], strict=True):
        x = torch.relu(x @ weight.T + bias)
    return float(torch.nn.functional.cross_entropy(x @ entries[-2].T + entries[-1], world.test.y))


@ALL
def test_two_workers_change_nothing(tiny: Tiny, words: tuple[str, ...]):
    alone, shared = (
        world_of(tiny(*words, "rounds=3", "evaluation.local_models=true", f"engine.workers={count}"))
        for count in (1, 2)
    )
    same(live(alone, alone.initial_state(), 3)[0], live(shared, shared.initial_state(), 3)[0])


@ALL
def test_a_stop_in_the_middle_changes_nothing(tiny: Tiny, words: tuple[str, ...], tmp_path: Path):
    config = tiny(*words, "rounds=5")
    world = world_of(config)
    whole, _ = live(world, world.initial_state(), 5)
    first, state = live(world, world.initial_state(), 3)
    checkpoint.save(tmp_path, state, config, {"name": "loop", "reason": ""})
    saved = checkpoint.load(tmp_path, config, torch.device("cpu"))
    assert saved is not None
    same(whole, first + live(world, saved.state, 5)[0])


@ALL
def test_both_engines_agree(tiny: Tiny, words: tuple[str, ...]):
    one, other = (world_of(tiny(*words, "rounds=2", f"engine={name}")) for name in ("loop", "stacked"))
    ends = [live(world, world.initial_state(), 2)[1].models[0] for world in (one, other)]
    assert ends[0].layout == ends[1].layout
    torch.testing.assert_close(ends[0].flat, ends[1].flat, rtol=1e-3, atol=1e-4)


@pytest.mark.law("aggregator=pfnm", "where no two units are alike, clients get their own hidden units back")
def test_clients_get_their_own_networks_back_where_nobody_agrees(tiny: Tiny):
    """With a tiny variance no two units are one, and the prior does not pull: the next start is the last end."""
    world = world_of(tiny("aggregator=pfnm", "aggregator.s=1e-9", "aggregator.gamma=1e9", "model.hidden=[5]", *SKEWED))
    state, row, sent = run_round(world.exp, world, world.initial_state())
    assert row["aggregator.width_1"] == 15
    start = dispatch(world.exp, world, state.models, sent.model, sent.owner, state.memory)
    trained = world.first.flat + sent.delta
    hidden = world.layout.sizes[0] + world.layout.sizes[1]
    torch.testing.assert_close(start[:, :hidden], trained[:, :hidden], rtol=1e-4, atol=1e-5)

    later, _, trained_on = run_round(world.exp, world, state)
    begun = dispatch(world.exp, world, state.models, trained_on.model, trained_on.owner, state.memory)
    start = dispatch(world.exp, world, later.models, trained_on.model, trained_on.owner, later.memory)
    ended = begun + trained_on.delta
    assert not torch.allclose(begun, world.first.flat, atol=1e-2)
    torch.testing.assert_close(start[:, :hidden], ended[:, :hidden], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("words", [PFNM, SPAHM], ids=["pfnm", "spahm"])
def test_a_client_whose_network_leaves_float32_is_left_out(
    tiny: Tiny, words: tuple[str, ...], caplog: pytest.LogCaptureFixture
):
    """What it sends is finite; what that makes of the network that it was given is not."""
    world = world_of(tiny(*words))
    largest = torch.finfo(torch.float32).max
    given = replace(world.first, flat=torch.full_like(world.first.flat, largest))
    clients, ones = np.arange(3), np.ones(3)
    delta = torch.full((3, world.layout.size), -largest) + torch.randn(3, world.layout.size)
    delta[1] = largest
    uploads = Uploads(clients, clients * 0, clients + 1, ones, delta, ones, ones)
    after, memory = world.exp.aggregator.combine(given, uploads, {}, context.make_context(world, 1))
    without, _ = world.exp.aggregator.combine(
        given, uploads.where(np.array([0, 2])), {}, context.make_context(world, 1)
    )
    assert torch.equal(after.flat, without.flat)
    assert after.flat.isfinite().all()
    assert memory["owner"].tolist() == [0, 2]
    assert "1 of 3 clients' networks are not finite and were left out" in caplog.text
    stays, _ = world.exp.aggregator.combine(given, uploads.where(np.array([1])), {}, context.make_context(world, 1))
    assert torch.equal(stays.flat, given.flat)


def test_a_client_never_seen_gets_the_most_popular_units(tiny: Tiny):
    world = world_of(tiny(*PFNM))
    state, _, sent = run_round(world.exp, world, world.initial_state())
    unseen = next(client for client in range(6) if client not in sent.owner)
    start = dispatch(world.exp, world, state.models, np.zeros(1, np.int64), np.array([unseen]), state.memory)
    popularity = state.memory["aggregator"]["0"]["popularity"][0]
    popular = popularity.argsort(descending=True, stable=True)[:5]
    views = state.models[0].layout.views(state.models[0].flat)
    wanted = [views[name] for name in world.layout.names]
    whole = [wanted[0][popular], wanted[1][popular], wanted[2][:, popular], wanted[3]]
    assert torch.equal(start[0], torch.cat([entry.flatten() for entry in whole]))


def test_the_memory_is_plain(tiny: Tiny):
    world = world_of(tiny(*DEEP))
    state, _, sent = run_round(world.exp, world, world.initial_state())
    memory = state.memory["aggregator"]["0"]
    assert set(memory) == {"owner", "held", "popularity"}
    assert memory["owner"].tolist() == sorted(sent.owner.tolist())
    assert [tuple(held.shape) for held in memory["held"]] == [(3, 5), (3, 4)]
    assert [int(each.sum()) for each in memory["popularity"]] == [15, 12]


@pytest.mark.law("aggregator=pfnm", "a single participant is obeyed, to the byte")
@pytest.mark.law("aggregator=spahm", "a single participant is obeyed, to the byte")
@ALL
def test_a_single_participant_is_obeyed_unchanged(tiny: Tiny, words: tuple[str, ...]):
    world = world_of(tiny(*words, "scenario.participants=1", "rounds=2"))
    state, row, sent = run_round(world.exp, world, world.initial_state())
    assert state.models[0].layout == world.layout
    assert torch.equal(state.models[0].flat, world.first.flat + sent.delta[0])
    assert row["aggregator.width_1"] == 5


@pytest.mark.law("aggregator=pfnm", "a round without uploads keeps the model and what is remembered, to the byte")
@pytest.mark.law("aggregator=spahm", "a round without uploads keeps the model and what is remembered, to the byte")
@ALL
def test_a_round_without_uploads_keeps_model_and_memory(tiny: Tiny, words: tuple[str, ...]):
    world = world_of(tiny(*words))
    state, _, sent = run_round(world.exp, world, world.initial_state())
    models, memory = fold(
        world.exp,
        state.models,
        sent.where(np.zeros(3, bool)),
        state.memory,
        context.make_context(world, 2, state.models),
        PendingChecks(),
    )
    assert torch.equal(models[0].flat, state.models[0].flat)
    assert memory["aggregator"]["columns"] == {**state.memory["aggregator"]["columns"], "dropped": 0}
    kept = memory["aggregator"]["0"]
    assert all(torch.equal(a, b) for a, b in zip(kept["held"], state.memory["aggregator"]["0"]["held"], strict=True))


def test_a_whole_run_with_data_upload(tiny: Tiny):
    """HybridFL's server is one more participant; it has units of its own too."""
    world = world_of(
        tiny(
            *PFNM,
            "selector=hybridfl",
            "selector.upload_permission=1",
            "selector.round_s=0.9",
            "fleet=simulated",
            "rounds=4",
        )
    )
    lived, _ = live(world, world.initial_state(), 4)
    assert any(SERVER in sent.owner for _, _, sent in lived)


@pytest.mark.parametrize("option", ["afl", "oort", "power_of_choice"])
def test_selectors_may_ask_for_losses_of_the_wide_model(tiny: Tiny, option: str):
    world = world_of(tiny(*PFNM, f"selector={option}", "rounds=3", "evaluation.client_losses=exact"))
    lived, last = live(world, world.initial_state(), 3)
    losses = context.make_context(world, 4, last.models).losses(np.arange(6))
    assert losses.shape == (6,)
    assert np.isfinite(losses).all()
    for _, _, sent in lived:
        assert sent.exact is not None
        assert (sent.exact[:, 1] < sent.exact[:, 0]).mean() > 0.5


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("aggregator=pfnm", "model=simple_cnn", "dataset.shape=[1,8,8]"), "model=simple_cnn has a Conv2d layer; use"),
        (
            ("aggregator=spahm", "model=har_cnn", "dataset.shape=[3,16]"),
            "aggregator=spahm matches hidden units of plain",
        ),
        (("aggregator=pfnm", "model.hidden=[]"), "model=mlp has no hidden layer"),
        (
            ("aggregator=spahm", "model.hidden=[5,4]"),
            "of one hidden layer, but model.hidden has 2; use aggregator=pfnm",
        ),
        (("aggregator=pfnm", "aggregator.s=[1,2]"), r"aggregator\.s must be .* there are 1 and it is \[1\.0, 2\.0\]"),
        (
            ("aggregator=pfnm", "server_optimizer=momentum"),
            "server_optimizer=momentum compares .* aggregator=pfnm changes",
        ),
        (("aggregator=spahm", "server_optimizer=adam"), "use server_optimizer=replace"),
        (("aggregator=pfnm", "server_optimizer=yogi"), "server_optimizer=yogi compares"),
        (("aggregator=pfnm", "selector=greedyfed"), "selector=greedyfed averages the global model with the clients'"),
        (("aggregator=pfnm", "local=fedplus"), "local=fedplus keeps entries of the network .* aggregator=pfnm changes"),
        (("aggregator=spahm", "local=scaffold"), "local=scaffold keeps entries of the network .* use local=sgd"),
        (("aggregator=pfnm", "aggregator.s=0"), r"aggregator\.s must be a number > 0 or a list \(each a number > 0\)"),
        (("aggregator=pfnm", "aggregator.popularity_factor=3"), "popularity_factor must be one of 1, 2"),
    ],
)
def test_refusals(tiny: Tiny, words: tuple[str, ...], complaint: str):
    with pytest.raises(ConfigError, match=complaint):
        compatibility.refuse(spec.build(tiny(*words)))
