"""The clients' own models beside the global one, against one network after another."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.func import functional_call
from worlds import world_of

from fedexp.core.values import Uploads
from fedexp.simulation.measures.participants import COLUMNS, columns
from fedexp.simulation.round import run_round
from fedexp.simulation.rounds import run_rounds
from fedexp.simulation.world import World

Tiny = Callable[..., dict[str, Any]]


def slow(world: World, start: torch.Tensor, sent: Uploads) -> list[float]:
    network = world.exp.model.network(world.exp.dataset.facts(world.exp.data_dir))
    x, y = world.test.inputs(slice(None)), world.test.y
    answers = [functional_call(network, world.layout.views(row), (x,)).softmax(dim=1) for row in start + sent.delta]
    together = torch.stack(answers).mean(dim=0)
    right = [float((each.argmax(dim=1) == y).double().mean()) for each in (*answers, together)]
    loss = -together[torch.arange(len(y)), y].log().mean()
    return [sum(right[:-1]) / len(answers), right[-1], float(loss)]


def test_alone_and_together(tiny: Tiny):
    world = world_of(tiny("evaluation.local_models=true", "engine.evaluation_chunk=25"))
    before = world.initial_state()
    for state, row, _ in run_rounds(world.exp, world, before):
        _, _, sent = run_round(world.exp, world, before)
        assert [row[name] for name in COLUMNS] == pytest.approx(slow(world, before.models[0].flat, sent), rel=1e-5)
        before = state


def test_empty_cells_in_rounds_without_evaluation_and_without_participants(tiny: Tiny):
    world = world_of(tiny("evaluation.local_models=true", "evaluation.every=2"))
    rows = [row for _, row, _ in run_rounds(world.exp, world, world.initial_state())]
    assert [row[COLUMNS[0]] is None for row in rows] == [True, False]
    nobody = ("selector=fedcs", "fleet=simulated", "selector.round_s=0.001", "stop=simulated_time")
    world = world_of(tiny("evaluation.local_models=true", *nobody))
    assert all(
        row[name] is None for _, row, _ in run_rounds(world.exp, world, world.initial_state()) for name in COLUMNS
    )


@pytest.mark.parametrize("words", [(), ("evaluation.local_models=true", "evaluation.test=false")], ids=" ".join)
def test_nothing_is_added_unless_asked_for_and_measurable(tiny: Tiny, words: tuple[str, ...]):
    world = world_of(tiny(*words))
    assert columns(world.exp) == ()
    assert not any(set(COLUMNS) & row.keys() for _, row, _ in run_rounds(world.exp, world, world.initial_state()))
