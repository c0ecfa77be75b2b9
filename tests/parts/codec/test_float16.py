"""Half-precision uploads: what travels, what is owed, and what it costs."""

from typing import Any

import numpy as np
import pytest
import torch
from worlds import Tiny, uploads_like, world_of

from fedexp.core.values import SERVER
from fedexp.parts.codec.float16 import LARGEST, Float16, round_to_float16
from fedexp.simulation import context
from fedexp.simulation.rounds import run_rounds


def last_row(config: dict[str, Any]) -> dict[str, Any]:
    """The last round's line of metrics.csv."""
    world = world_of(config)
    return [row for _, row, _ in run_rounds(world.exp, world, world.initial_state())][-1]


def test_by_hand():
    """Between 1 and 2 float16 numbers are 2**-10 apart; 1 + 2**-12 becomes 1, and what is too large the largest."""
    rows = torch.tensor([[1 + 2**-12, 3.0, 1e6, -1e6]])
    assert round_to_float16(rows).tolist() == [[1.0, 3.0, LARGEST, -LARGEST]]


def test_what_was_lost_is_sent_next_time(tiny: Tiny):
    ctx = context.make_context(world_of(tiny()), 1)
    step = torch.tensor([[1 + 2**-11.5]])
    memory, total = {}, 0.0
    for number in range(1, 9):
        sent, memory = Float16().encode(uploads_like(step), memory, ctx)
        total += sent.delta.item()
        owed = number * step.item() - total
        assert memory["rows"].item() == pytest.approx(owed, abs=1e-6)
        assert abs(owed) <= 2**-11 + 1e-6  # half the distance of two numbers, however many rounds
    assert total > 8


def test_the_servers_row_and_rows_that_are_not_finite_stay_as_they_are(tiny: Tiny):
    ctx = context.make_context(world_of(tiny()), 1)
    delta = torch.tensor([[1 + 2**-12], [float("inf")], [1 + 2**-12]])
    sent, memory = Float16().encode(uploads_like(delta, [SERVER, 4, 2]), {}, ctx)
    assert sent.delta.tolist() == [[1 + 2**-12], [float("inf")], [1.0]]
    assert memory["owner"].tolist() == [2]
    assert delta[2].item() == 1 + 2**-12


def test_half_the_megabytes_travel_up_and_nearly_the_same_is_learnt(tiny: Tiny):
    words = ("rounds=6", "dataset.train_size=300", "fleet=simulated", "fleet.dropout=0")
    (plain, half) = (last_row(tiny(f"codec={name}", *words)) for name in ("none", "float16"))
    assert half["mb_up"] == plain["mb_up"] / 2
    assert half["mb_down"] == plain["mb_down"]
    assert half["sim_s"] < plain["sim_s"]
    assert half["test_loss"] == pytest.approx(plain["test_loss"], rel=1e-2)
    assert 0 < half["codec.lost"] < 1e-3


def test_scaffolds_second_row_is_rounded_too(tiny: Tiny):
    (plain, half) = (last_row(tiny(f"codec={name}", "local=scaffold")) for name in ("none", "float16"))
    assert half["mb_up"] == plain["mb_up"] / 2
    assert np.isfinite(half["train_loss"])
