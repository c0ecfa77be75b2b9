"""Noise on every client's row: clipped and noised as promised, and what two updates may differ by."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from worlds import uploads_like, world_of

from fedexp.maths.rows import clip_rows
from fedexp.parts.privacy.accounting import epsilons
from fedexp.parts.privacy.client_local import ClientLocal
from fedexp.simulation import context
from fedexp.simulation.round import run_round

Tiny = Callable[..., dict[str, Any]]


LOCAL = ("privacy=client_local", "privacy.clip=0.5", "privacy.noise_multiplier=2", "privacy.delta=1e-3")


class TestLocal:
    @pytest.mark.law("privacy=client_local", "a client's noise does not depend on who else takes part, to the byte")
    def test_every_row_is_clipped_and_noised_by_itself(self, tiny: Tiny):
        world = world_of(tiny(*LOCAL))
        size = 40_000
        delta = torch.zeros(2, size)
        delta[:, 0] = 100.0
        sent, _ = world.exp.privacy.protect(uploads_like(delta), {}, context.make_context(world, 1))
        noise = sent.delta - clip_rows(delta, 0.5)
        assert noise.std() == pytest.approx(2 * 0.5, rel=0.02)
        assert abs(torch.corrcoef(noise)[0, 1]) < 5 / math.sqrt(size)
        alone, _ = world.exp.privacy.protect(
            uploads_like(delta).where(np.array([False, True])), {}, context.make_context(world, 1)
        )
        assert torch.equal(alone.delta[0], sent.delta[1])
        later, _ = world.exp.privacy.protect(uploads_like(delta), {}, context.make_context(world, 2))
        assert abs(torch.corrcoef(torch.stack([later.delta[0], sent.delta[0]]))[0, 1]) < 0.05

    @pytest.mark.law(
        "privacy=client_local", "epsilon is that of half the noise multiplier, as two updates differ by twice the clip"
    )
    def test_two_updates_differ_by_twice_the_clip(self, tiny: Tiny):
        world = world_of(tiny(*LOCAL, "scenario.participants=2", "rounds=3"))
        state, parts = world.initial_state(), np.zeros(6, dtype=np.int64)
        for _ in range(3):
            state, row, sent = run_round(world.exp, world, state)
            parts[sent.owner] += 1
            rdp, pld = epsilons(np.ones(6), 1.0, parts, 1e-3)  # sigma / 2
            assert row["privacy.epsilon_rdp"] == rdp.max()
            assert row["privacy.epsilon_pld"] == pld.max()
            said = world.exp.privacy.client_columns(
                sent.owner, state.memory["privacy"], context.make_context(world, state.round)
            )
            assert said["epsilon_pld"].tolist() == pld[sent.owner].tolist()

    def test_malicious_clients_do_as_they_please(self, tiny: Tiny):
        world = world_of(tiny(*LOCAL, "scenario.malicious=2"))
        delta = torch.full((6, 3), 7.0)
        ctx = context.make_context(world, 1)
        memory = world.exp.privacy.spend(np.arange(6), np.ones(6), {}, ctx)
        sent, memory = world.exp.privacy.protect(uploads_like(delta), memory, ctx)
        untouched = (sent.delta == 7).all(dim=1).numpy()
        assert np.flatnonzero(untouched).tolist() == world.malicious.tolist()
        assert memory["owner"].tolist() == np.flatnonzero(~untouched).tolist()

    def test_who_comes_too_late_is_charged_all_the_same(self, tiny: Tiny):
        world = world_of(tiny(*LOCAL, "fleet=simulated", "fleet.deadline_s=0.001", "scenario.participants=6"))
        _, row, sent = run_round(world.exp, world, world.initial_state())
        assert (row["fleet.late"], len(sent.owner)) == (6, 6)
        assert row["privacy.epsilon_pld"] == epsilons(np.ones(1), 1.0, np.ones(1, np.int64), 1e-3)[1][0]

    def test_sigma_is_worked_out(self):
        part = ClientLocal(clip=1.0, epsilon=4.0, delta=1e-3, rounds=5)
        settled = part.calibrate_noise(np.array([20]), None, 0.1)  # pyright: ignore[reportArgumentType]
        _, pld = epsilons(np.ones(1), settled.noise / 2, np.array([5]), 1e-3)
        assert 3.95 < pld[0] <= 4
