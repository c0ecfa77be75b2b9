"""DP-SGD (Abadi et al. 2016): each example's gradient is clipped and their sum noised, on the client.

A participant takes epochs * floor(n / B) steps (or `local.steps`; none if n < B). Its examples are
(epsilon, delta)-private, for one example more or less, against anyone who sees its uploads, including the server. The
number n itself is no secret: steps, rates and weights follow from it. Clients hold disjoint data, so the federation's
epsilon is its largest client's, not a sum.

Batches are drawn by Poisson sampling with q = B / n, as the accountants assume, or `shuffled` into floor(n / B) of
exactly B examples, for which the same figures are a customary approximation and no upper bound. Legend: n clients.
"""

import logging
from dataclasses import replace
from typing import Literal

import numpy as np
from torch import nn

from fedexp.core.errors import ConfigError
from fedexp.core.part import option
from fedexp.core.values import Columns, Memory
from fedexp.parts.context import Context
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.local.contract import LocalRule
from fedexp.parts.model.contract import Model
from fedexp.parts.network_errors import readable_network
from fedexp.parts.privacy.accounting import noise_multiplier_for
from fedexp.parts.privacy.contract import Sampling
from fedexp.parts.privacy.ledger import Ledger
from fedexp.parts.privacy.settings import PromisedPrivacy
from fedexp.parts.workload import Workload

log = logging.getLogger(__name__)


class DPSGD(PromisedPrivacy):
    """Per-example clipping at `clip` and Gaussian noise of `noise_multiplier * clip` on every batch's sum.

    Instead of the noise multiplier one may give `epsilon`, a bound for clients that take part in `rounds` rounds.
    """

    clipped_unit = "each example's gradient"
    needs_all_rows = False

    batches: Literal["poisson", "shuffled"] = "poisson"

    @property
    def sampling(self) -> Sampling:
        return self.batches

    @property
    def example_clip(self) -> float:
        return self.required_clip

    @property
    def example_noise(self) -> float:
        return self.noise * self.required_clip if self.noise else 0.0

    def refuse(self, model: Model, facts: Facts) -> None:
        for layer in readable_network(model, facts).modules():
            if isinstance(layer, nn.modules.batchnorm._BatchNorm):
                raise ConfigError(
                    f"privacy=dp_sgd clips the gradient of each example, but model={option(model)} has batch "
                    "normalisation, which mixes the examples of a batch; use model.norm=group"
                )

    def calibrate_noise(self, sizes: np.ndarray, rule: LocalRule, rate: float) -> "DPSGD":
        steps, largest = rule.full_batch_steps(sizes), int(sizes.max(initial=0))
        if not steps.any():
            raise ConfigError(
                f"privacy=dp_sgd drops partial batches, but no client has local.batch_size={rule.batch_size} examples "
                f"(the largest has {largest}); write local.batch_size={max(largest // 10, 1)} or another up to "
                f"{largest}, or full"
            )
        if self.required_delta * largest >= 1:
            log.warning(
                "privacy.delta=%g promises nothing, as a client may then publish an example; take less than 1 / %d, "
                "one over the examples of the largest client",
                *(self.required_delta, largest),
            )
        if self.epsilon is None:
            return self
        sigma = noise_multiplier_for(
            self.epsilon, self.required_delta, sampling_rates(rule, sizes), steps * self.rounds, self.accountant
        )
        return replace(self, noise_multiplier=sigma, epsilon=None)

    def guarantee(self) -> str:
        assumption = (
            "each example enters each batch by a coin of its own (Poisson sampling)"
            if self.batches == "poisson"
            else "Poisson sampling is assumed where batches are shuffled, which is customary and no upper bound"
        )
        return (
            f"clip {self.required_clip:g}, noise multiplier {self.noise:.4g}; epsilon at delta {self.required_delta:g} "
            f"for one example more or less of a client, the number of which is no secret, against all who see its "
            f"uploads; {assumption}"
        )

    def spend(self, owner: np.ndarray, steps: np.ndarray, memory: Memory, ctx: Context) -> Memory:
        ledger = Ledger.load(memory).add(owner, steps)
        rate, now = sampling_rates(ctx.fleet.workload, ctx.sizes), ledger.of(np.arange(ctx.clients))
        after_next = now + ctx.fleet.workload.full_batch_steps(ctx.sizes)
        return ledger.save() | {"columns": self.ledger_columns(rate, self.noise, now, after_next)}

    def forecast(self, selected: Ledger, rounds: int, ctx: Context) -> Columns:
        steps = selected.count * ctx.fleet.workload.full_batch_steps(ctx.sizes[selected.owner])
        return self.spend(selected.owner, steps, {}, ctx)["columns"]

    def client_columns(self, owner: np.ndarray, memory: Memory, ctx: Context) -> dict[str, np.ndarray]:
        rates = sampling_rates(ctx.fleet.workload, ctx.sizes[owner])
        return self.epsilon_columns(rates, self.noise, Ledger.load(memory).of(owner))


def sampling_rates(rule: Workload, sizes: np.ndarray) -> np.ndarray:
    """The sampling rates q = B / n, `[n]`, of clients with `sizes [n]`: 1 for full batches, 0 without a whole batch."""
    size = sizes if rule.batch_size == "full" else np.full(len(sizes), rule.batch_size)
    return np.divide(size, sizes, out=np.zeros(len(sizes)), where=(sizes >= size) & (sizes > 0))
