"""Noise on the mean of the clients' rows: as much as promised, and a clip that follows the norms."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from worlds import uploads_like, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.parts.privacy.accounting import epsilons
from fedexp.parts.privacy.client_central import ClientCentral
from fedexp.simulation import context
from fedexp.simulation.round import run_round
from fedexp.simulation.setup import compatibility

Tiny = Callable[..., dict[str, Any]]
CENTRAL = ("privacy=client_central", "privacy.clip=0.5", "privacy.noise_multiplier=2", "privacy.delta=1e-3")
UNIFORM = ("aggregator.weighting=uniform",)


class TestCentral:
    @pytest.mark.law("privacy=client_central", "the mean of n clients has noise of clip times noise_multiplier / n")
    @pytest.mark.parametrize("clients", [1, 4])
    def test_the_mean_has_the_noise_of_the_sum_over_the_clients(self, tiny: Tiny, clients: int):
        world = world_of(tiny(*CENTRAL, *UNIFORM))
        delta = torch.zeros(clients, 40_000)
        sent, memory = world.exp.privacy.protect(uploads_like(delta), {}, context.make_context(world, 1))
        assert sent.delta.mean(dim=0).std() == pytest.approx(2 * 0.5 / clients, rel=0.02)
        assert memory["columns"]["clip"] == 0.5

    @pytest.mark.law("privacy=client_central", "the noise is shared by the clients that count and by no others")
    def test_only_rows_that_count_share_the_noise(self, tiny: Tiny):
        world = world_of(tiny(*CENTRAL, *UNIFORM))
        delta = torch.zeros(4, 40_000)
        delta[1, 0] = torch.nan
        sent, _ = world.exp.privacy.protect(
            uploads_like(delta, examples=np.array([5, 5, 0, 5])), {}, context.make_context(world, 1)
        )
        assert sent.owner.tolist() == [0, 3]
        assert sent.delta.mean(dim=0).std() == pytest.approx(2 * 0.5 / 2, rel=0.02)

    @pytest.mark.law(
        "privacy=client_central", "m of n clients drawn uniformly are charged at the rate m / n, everybody at 1"
    )
    def test_uniform_draws_amplify_and_other_selectors_do_not(self, tiny: Tiny):
        drawn = world_of(tiny(*CENTRAL, *UNIFORM)).exp.privacy
        assert isinstance(drawn, ClientCentral)
        assert drawn.rate == 0.5
        everyone = world_of(tiny(*CENTRAL, *UNIFORM, "selector=all")).exp.privacy
        assert isinstance(everyone, ClientCentral)
        assert everyone.rate == 1

    def test_the_ledger_charges_every_client_every_round(self, tiny: Tiny):
        world = world_of(tiny(*CENTRAL, *UNIFORM))
        state = world.initial_state()
        for number in (1, 2):
            state, row, sent = run_round(world.exp, world, state)
            rdp, pld = epsilons(np.array([0.5]), 2.0, np.array([number]), 1e-3)
            assert (row["privacy.epsilon_rdp"], row["privacy.epsilon_pld"]) == (rdp[0], pld[0])
            said = world.exp.privacy.client_columns(
                sent.owner, state.memory["privacy"], context.make_context(world, number)
            )
            assert said["epsilon_rdp"].tolist() == [rdp[0]] * 3

    @pytest.mark.law("privacy=client_central", "the adaptive clip settles at the quantile of the updates' lengths")
    def test_the_clip_finds_the_quantile_of_the_norms(self, tiny: Tiny):
        """Norms 1..100: the clip settles where half of them need no clipping."""
        world = world_of(tiny(*CENTRAL, *UNIFORM, "privacy.quantile=0.5"))
        part = replace(world.exp.privacy, noise_multiplier=0.0, count_noise=1.0)  # only the count has noise
        delta, memory = torch.zeros(100, 3), {}
        delta[:, 0] = torch.arange(1, 101).float()
        for number in range(1, 120):
            _, memory = part.protect(uploads_like(delta), memory, context.make_context(world, number))
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
        with pytest.raises(
            ConfigError,
            match=r"noises the mean .* use (aggregator=fedavg aggregator.weighting=uniform|pre_aggregation=none)",
        ):
            compatibility.refuse(spec.build(tiny(*CENTRAL, *words)))

    def test_selectors_that_look_at_single_rows_are_refused(self, tiny: Tiny):
        with pytest.raises(ConfigError, match="selector=greedyfed looks at those of single clients"):
            compatibility.refuse(spec.build(tiny(*CENTRAL, *UNIFORM, "selector=greedyfed")))

    @pytest.mark.law("privacy=client_central", "the secure mean carries the same noise")
    def test_shares_of_a_mean_carry_the_noise_too(self, tiny: Tiny):
        words = (*CENTRAL, *UNIFORM)
        plain, _, _ = run_round(*(lambda w: (w.exp, w, w.initial_state()))(world_of(tiny(*words))))
        shared, _, _ = run_round(
            *(lambda w: (w.exp, w, w.initial_state()))(world_of(tiny(*words, "aggregator=secure_mean")))
        )
        torch.testing.assert_close(shared.models[0].flat, plain.models[0].flat, atol=1e-6, rtol=0)


def test_one_example_costs_as_much_as_half_the_noise(tiny: Tiny):
    """The ledger is of a client more or less; an example, in or out, moves its client by up to twice the clip."""
    world = world_of(tiny(*CENTRAL, *UNIFORM, "selector=all"))
    columns = world.exp.privacy.example_columns({"round": 3, "privacy.epsilon_pld": 1.0})
    assert columns == {"privacy.epsilon_pld": epsilons(np.ones(1), 1.0, np.array([3]), 1e-3)[1][0]}
    assert world_of(tiny()).exp.privacy.example_columns({"round": 3}) == {}
