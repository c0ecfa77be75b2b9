"""Client-level privacy with a trusted server: updates are clipped, and noise is added to their mean.

Sources: McMahan et al. 2018 (arXiv 1710.06963, algorithm 1); the mean is that of Geyer, Klein & Nabi 2017 (arXiv
1712.07557, section 3). Every row is divided by max(1, norm / C), and the mean of the m rows that arrived gets N(0,
(sigma C / m)^2) on every entry. Deviation from the former: it weights clients and divides by their expected weight, a
constant; here m divides, and is taken as public. What the server publishes is private for one client more or less. The
noise is added to the rows, N(0, (sigma C)^2 / m) each, which gives the same mean. Uniform draws of clients amplify
privacy. The accountants assume Poisson sampling at the rate of the draw, though the draw is of a fixed number of
clients: this is customary, and no upper bound. There a client that leaves makes room for another, whose clipped row may
be its opposite; the epsilon for half the noise multiplier bounds what one client in the place of another changes (Zhu,
Dong & Wang 2022, arXiv 2106.08567, without replacement). A row is a client's whole message: rows that its rule sends
beside the update are clipped together with it, and noised.

With `quantile` the clip follows that quantile of the norms (Andrew et al. 2021, arXiv 1905.03871): with b~ the noised
share of rows that needed no clipping, C <- C exp(-clip_lr (b~ - quantile)). The count gets N(0, count_noise^2) (in the
paper a twentieth of the participants; here sigma by default), and the rows z = (sigma^-2 - (2 count_noise)^-2)^(-1/2)
instead of sigma, so that both together spend as much as sigma.
"""

from dataclasses import replace
from typing import Annotated

import numpy as np

from fedexp.core.device_arrays import finite
from fedexp.core.errors import ConfigError
from fedexp.core.part import Positive, Range
from fedexp.core.values import Columns, Memory, Uploads
from fedexp.maths.rows import clip_rows, distances_to
from fedexp.parts.context import Context
from fedexp.parts.local.contract import LocalRule
from fedexp.parts.privacy.accounting import largest_epsilon, noise_multiplier_for
from fedexp.parts.privacy.ledger import Ledger
from fedexp.parts.privacy.noise import add_noise, noise_std
from fedexp.parts.privacy.settings import PromisedPrivacy


class ClientCentral(PromisedPrivacy):
    """Clipping at `clip`, which adapts if `quantile` is given; noise of `noise_multiplier * clip` on the rows' sum."""

    noises_mean = True

    quantile: Annotated[float, Range(0, 1, low_open=True, high_open=True)] | None = None
    clip_lr: Annotated[float, Positive] = 0.2
    count_noise: Annotated[float, Positive] | None = None
    rate: Annotated[float, Range(0, 1, low_open=True)] = 1.0  # of the draw of clients; taken from the selector

    def calibrate_noise(self, sizes: np.ndarray, rule: LocalRule, rate: float) -> "ClientCentral":
        part = replace(self, rate=rate)
        if self.epsilon is not None:
            rounds = np.array([self.rounds])
            sigma = noise_multiplier_for(self.epsilon, self.required_delta, np.array([rate]), rounds, self.accountant)
            part = replace(part, noise_multiplier=sigma, epsilon=None)
        part.refuse_quiet_count()
        return part

    def refuse_quiet_count(self) -> None:
        """Raises ConfigError if the noise on the count is so small that no noise on the rows could make up for it."""
        if self.quantile is not None and self.noise and 2 * self.count_std <= self.noise:
            raise ConfigError(
                f"privacy.count_noise must be above half the noise multiplier, {self.noise / 2:.4g}, got "
                f"{self.count_std:g}; raise it"
            )

    @property
    def row_noise(self) -> float:
        """The noise multiplier of the rows, after the count has taken its share."""
        if self.quantile is None or self.noise == 0:
            return self.noise
        return (self.noise**-2 - (2 * self.count_std) ** -2) ** -0.5

    @property
    def count_std(self) -> float:
        """Standard deviation of the noise on the count of rows that needed no clipping."""
        return self.noise if self.count_noise is None else self.count_noise

    def guarantee(self) -> str:
        amplification = (
            f"Poisson sampling with q = {self.rate:.4g} is assumed where so many are drawn, which is customary and no "
            "upper bound (half the noise multiplier gives one for a client in the place of another)"
            if self.rate < 1
            else "every round is charged to every client"
        )
        clip = f"clip {self.required_clip:g}" if self.quantile is None else f"clip from {self.required_clip:g} on"
        return (
            f"{clip}, noise multiplier {self.noise:.4g}; epsilon at delta {self.required_delta:g} for one client more "
            f"or less, against all who see the global models, the server being trusted and the number of uploads in a "
            f"round no secret; {amplification}"
        )

    def protect(self, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Uploads, Memory]:
        uploads = uploads.where(finite(uploads.delta) & (uploads.examples > 0))
        clip, present, rounds = memory.get("clip", self.required_clip), len(uploads.owner), memory.get("rounds", 0) + 1
        std = noise_std(self.row_noise, clip) / max(1, present) ** 0.5
        delta = add_noise(clip_rows(uploads.delta, clip), uploads.owner, std, ctx)
        columns = self.ledger_columns(np.array([self.rate]), self.noise, np.array([rounds]), np.array([rounds + 1]))
        next_clip = self._next_clip(clip, uploads, ctx)
        return uploads.with_delta(delta), {"rounds": rounds, "clip": next_clip, "columns": columns | {"clip": clip}}

    def forecast(self, selected: Ledger, rounds: int, ctx: Context) -> Columns:
        return self.ledger_columns(np.array([self.rate]), self.noise, np.array([rounds]), np.array([rounds + 1]))

    def example_columns(self, row: Columns) -> Columns:
        """The epsilon for half the noise: an example, in or out, moves its client's update by up to twice the clip."""
        rate, rounds = np.array([self.rate]), np.array([int(row["round"] or 0)])
        return {"privacy.epsilon_pld": largest_epsilon(rate, self.noise / 2, rounds, self.required_delta, "pld")}

    def client_columns(self, owner: np.ndarray, memory: Memory, ctx: Context) -> dict[str, np.ndarray]:
        everyone = np.ones(len(owner), dtype=np.int64)
        return self.epsilon_columns(self.rate * everyone, self.noise, memory.get("rounds", 0) * everyone)

    def _next_clip(self, clip: float, uploads: Uploads, ctx: Context) -> float:
        if self.quantile is None or not len(uploads.owner):
            return clip
        unclipped = int((distances_to(uploads.delta) <= clip).sum())
        noise = self.count_std * float(ctx.rng("privacy", "count").standard_normal())
        return clip * float(np.exp(-self.clip_lr * ((unclipped + noise) / len(uploads.owner) - self.quantile)))
