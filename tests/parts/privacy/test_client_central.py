"""Client-level privacy: rows are clipped and noised as promised, the mean's noise is right, the clip follows."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.values import Uploads
from fedexp.parts.privacy.accounting import epsilons
from fedexp.parts.privacy.client_central import ClientCentral
from fedexp.parts.privacy.client_local import ClientLocal
from fedexp.parts.privacy.clipping import clipped
from fedexp.simulation import compatibility, context
from fedexp.simulation.round import run_round
from fedexp.simulation.world import World, build_world
from fedexp.training.workers import Crew

Tiny = Callable[..., dict[str, Any]]
LOCAL = ("privacy=client_local", "privacy.clip=0.5", "privacy.noise_multiplier=2", "privacy.delta=1e-3")
CENTRAL = ("privacy=client_central", "privacy.clip=0.5", "privacy.noise_multiplier=2", "privacy.delta=1e-3")
UNIFORM = ("aggregator.weighting=uniform",)


def world_of(config: dict[str, Any]) -> World:
    return build_world(spec.build(config), None, Crew())


def uploads(delta: torch.Tensor, examples: np.ndarray | None = None) -> Uploads:
    owner = np.arange(len(delta))
    ones = np.ones(len(delta))
    examples = np.full(len(delta), 20) if examples is None else examples
    return Uploads(owner, owner * 0, examples, ones, delta, ones, ones)


def test_clipping_by_hand():
    rows = torch.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    torch.testing.assert_close(clipped(rows, 1.0), torch.tensor([[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]]))
    assert torch.equal(clipped(rows, math.inf), rows)


class TestLocal:
    def test_every_row_is_clipped_and_noised_by_itself(self, tiny: Tiny):
        world = world_of(tiny(*LOCAL))
        size = 40_000
        delta = torch.zeros(2, size)
        delta[:, 0] = 100.0
        sent, _ = world.exp.privacy.protect(uploads(delta), {}, context.at(world, 1))
        noise = sent.delta - clipped(delta, 0.5)
        assert noise.std() == pytest.approx(2 * 0.5, rel=0.02)
        assert abs(torch.corrcoef(noise)[0, 1]) < 5 / math.sqrt(size)
        alone, _ = world.exp.privacy.protect(uploads(delta).where(np.array([False, True])), {}, context.at(world, 1))
        assert torch.equal(alone.delta[0], sent.delta[1])
        later, _ = world.exp.privacy.protect(uploads(delta), {}, context.at(world, 2))
        assert abs(torch.corrcoef(torch.stack([later.delta[0], sent.delta[0]]))[0, 1]) < 0.05

    def test_two_updates_differ_by_twice_the_clip(self, tiny: Tiny):
        world = world_of(tiny(*LOCAL, "scenario.participants=2", "rounds=3"))
        state, parts = world.beginning(), np.zeros(6, dtype=np.int64)
        for _ in range(3):
            state, row, sent = run_round(world.exp, world, state)
            parts[sent.owner] += 1
            rdp, pld = epsilons(np.ones(6), 1.0, parts, 1e-3)  # sigma / 2
            assert row["privacy.epsilon_rdp"] == rdp.max()
            assert row["privacy.epsilon_pld"] == pld.max()
            said = world.exp.privacy.statement(sent.owner, state.memory["privacy"], context.at(world, state.round))
            assert said["epsilon_pld"].tolist() == pld[sent.owner].tolist()

    def test_malicious_clients_do_as_they_please(self, tiny: Tiny):
        world = world_of(tiny(*LOCAL, "scenario.malicious=2"))
        delta = torch.full((6, 3), 7.0)
        sent, memory = world.exp.privacy.protect(uploads(delta), {}, context.at(world, 1))
        untouched = (sent.delta == 7).all(dim=1).numpy()
        assert np.flatnonzero(untouched).tolist() == world.malicious.tolist()
        assert memory["owner"].tolist() == np.flatnonzero(~untouched).tolist()

    def test_sigma_is_worked_out(self):
        part = ClientLocal(clip=1.0, epsilon=4.0, delta=1e-3, rounds=5)
        settled = part.settle(np.array([20]), None, 0.1)  # type: ignore[arg-type]
        _, pld = epsilons(np.ones(1), settled.noise / 2, np.array([5]), 1e-3)
        assert 3.95 < pld[0] <= 4


class TestCentral:
    @pytest.mark.parametrize("clients", [1, 4])
    def test_the_mean_has_the_noise_of_the_sum_over_the_clients(self, tiny: Tiny, clients: int):
        world = world_of(tiny(*CENTRAL, *UNIFORM))
        delta = torch.zeros(clients, 40_000)
        sent, memory = world.exp.privacy.protect(uploads(delta), {}, context.at(world, 1))
        assert sent.delta.mean(dim=0).std() == pytest.approx(2 * 0.5 / clients, rel=0.02)
        assert memory["columns"]["clip"] == 0.5

    def test_only_rows_that_count_share_the_noise(self, tiny: Tiny):
        world = world_of(tiny(*CENTRAL, *UNIFORM))
        delta = torch.zeros(4, 40_000)
        delta[1, 0] = torch.nan
        sent, _ = world.exp.privacy.protect(uploads(delta, np.array([5, 5, 0, 5])), {}, context.at(world, 1))
        assert sent.owner.tolist() == [0, 3]
        assert sent.delta.mean(dim=0).std() == pytest.approx(2 * 0.5 / 2, rel=0.02)

    def test_uniform_draws_amplify_and_other_selectors_do_not(self, tiny: Tiny):
        drawn = world_of(tiny(*CENTRAL, *UNIFORM)).exp.privacy
        assert isinstance(drawn, ClientCentral)
        assert drawn.rate == 0.5
        everyone = world_of(tiny(*CENTRAL, *UNIFORM, "selector=all")).exp.privacy
        assert isinstance(everyone, ClientCentral)
        assert everyone.rate == 1

    def test_the_ledger_charges_every_client_every_round(self, tiny: Tiny):
        world = world_of(tiny(*CENTRAL, *UNIFORM))
        state = world.beginning()
        for number in (1, 2):
            state, row, sent = run_round(world.exp, world, state)
            rdp, pld = epsilons(np.array([0.5]), 2.0, np.array([number]), 1e-3)
            assert (row["privacy.epsilon_rdp"], row["privacy.epsilon_pld"]) == (rdp[0], pld[0])
            said = world.exp.privacy.statement(sent.owner, state.memory["privacy"], context.at(world, number))
            assert said["epsilon_rdp"].tolist() == [rdp[0]] * 3

    def test_the_clip_finds_the_quantile_of_the_norms(self, tiny: Tiny):
        """Norms 1..100: the clip settles where half of them need no clipping."""
        world = world_of(tiny(*CENTRAL, *UNIFORM, "privacy.quantile=0.5"))
        part = replace(world.exp.privacy, noise_multiplier=1e-3, count_noise=1.0)
        delta, memory = torch.zeros(100, 3), {}
        delta[:, 0] = torch.arange(1, 101).float()
        for number in range(1, 120):
            _, memory = part.protect(uploads(delta), memory, context.at(world, number))
        assert memory["clip"] == pytest.approx(50, rel=0.1)

    def test_rows_and_count_together_cost_sigma(self):
        part = ClientCentral(clip=1.0, noise_multiplier=1.0, delta=1e-3, quantile=0.5, count_noise=2.0)
        assert part.row_noise**-2 + (2 * 2.0) ** -2 == pytest.approx(1.0)
        assert replace(part, quantile=None).row_noise == 1.0
        assert replace(part, count_noise=None).row_noise == pytest.approx(2 / math.sqrt(3))

    def test_a_count_noised_too_little_is_refused(self, tiny: Tiny):
        with pytest.raises(ConfigError, match=r"privacy.count_noise must be above half the noise multiplier, 1, got 1"):
            world_of(tiny(*CENTRAL, *UNIFORM, "privacy.quantile=0.5", "privacy.count_noise=1"))

    @pytest.mark.parametrize(
        "words",
        [
            ("aggregator=median",),
            ("aggregator=krum",),
            (),
            (*UNIFORM, "pre_aggregation=bucketing"),
            (*UNIFORM, "aggregator=secure_mean", "aggregator.dropout=0.1"),
        ],
    )
    def test_anything_but_a_mean_of_equal_shares_is_refused(self, tiny: Tiny, words: tuple[str, ...]):
        with pytest.raises(ConfigError, match=r"noises the mean .* use aggregator=fedavg aggregator.weighting=uniform"):
            compatibility.refuse(spec.build(tiny(*CENTRAL, *words)))

    def test_selectors_that_look_at_single_rows_are_refused(self, tiny: Tiny):
        with pytest.raises(ConfigError, match="selector=greedyfed looks at those of single clients"):
            compatibility.refuse(spec.build(tiny(*CENTRAL, *UNIFORM, "selector=greedyfed")))

    def test_shares_of_a_mean_carry_the_noise_too(self, tiny: Tiny):
        words = (*CENTRAL, *UNIFORM)
        plain, _, _ = run_round(*(lambda w: (w.exp, w, w.beginning()))(world_of(tiny(*words))))
        shared, _, _ = run_round(
            *(lambda w: (w.exp, w, w.beginning()))(world_of(tiny(*words, "aggregator=secure_mean")))
        )
        torch.testing.assert_close(shared.models[0].flat, plain.models[0].flat, atol=1e-6, rtol=0)
