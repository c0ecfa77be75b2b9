"""Client-level privacy without a trusted server: every client clips its update and adds noise before sending it.

The row that the client sends is divided by max(1, norm / C) and gets N(0, (sigma C)^2) on every entry. Rows that its
rule sends beside the update are clipped together with it. All data of a client is protected, but not how much it is:
the number of its examples is sent as it is, and weighs its row with `aggregator.weighting=num_samples`. Any two updates
differ by at most 2C, so the mechanism is a Gaussian one (Dwork & Roth 2014, appendix A) of noise multiplier
sigma / 2 for each participation. There is no amplification, since the server sees who sent what. A client that trains
is charged whether its upload arrives, comes too late or breaks off: somebody may have seen it.

The rows of malicious clients are left as the attack made them, and nothing is promised to these clients.
"""

from dataclasses import replace

import numpy as np
import torch

from fedexp.parts import Columns, Context, LocalRule, Memory, Uploads, clip_rows
from fedexp.parts.privacy.accounting import noise_multiplier_for
from fedexp.parts.privacy.ledger import Ledger
from fedexp.parts.privacy.noise import add_noise, noise_std
from fedexp.parts.privacy.settings import PromisedPrivacy

ONE = np.ones(1)


class ClientLocal(PromisedPrivacy):
    """Clipping at `clip` and noise of `noise_multiplier * clip`, or as much as `epsilon` over `rounds` rounds needs."""

    def calibrate_noise(self, sizes: np.ndarray, rule: LocalRule, rate: float) -> "ClientLocal":
        if self.epsilon is None:
            return self
        rounds = np.array([self.rounds])
        half = noise_multiplier_for(self.epsilon, self.required_delta, ONE, rounds, self.accountant)
        return replace(self, noise_multiplier=2 * half, epsilon=None)

    def guarantee(self) -> str:
        return (
            f"clip {self.required_clip:g}, noise multiplier {self.noise:.4g}; epsilon at delta {self.required_delta:g} "
            f"for all that a client holds but the number of its examples, against all who see its uploads, by every "
            "participation"
        )

    def spend(self, owner: np.ndarray, steps: np.ndarray, memory: Memory, ctx: Context) -> Memory:
        honest = owner[~ctx.malicious(owner)]
        ledger = Ledger.load(memory).add(honest, np.ones(len(honest), dtype=np.int64))
        largest = np.array([ledger.count.max(initial=0)])
        return ledger.save() | {"columns": self.ledger_columns(ONE, self.noise / 2, largest, largest + 1)}

    def protect(self, uploads: Uploads, memory: Memory, ctx: Context) -> tuple[Uploads, Memory]:
        honest = np.flatnonzero(~ctx.malicious(uploads.owner))
        positions = torch.from_numpy(honest).to(uploads.delta.device)
        protected = add_noise(
            clip_rows(uploads.delta[positions], self.required_clip),
            uploads.owner[honest],
            noise_std(self.noise, self.required_clip),
            ctx,
        )
        return uploads.with_delta(uploads.delta.index_copy(0, positions, protected)), memory

    def forecast(self, selected: Ledger, rounds: int, ctx: Context) -> Columns:
        largest = selected.count[~ctx.malicious(selected.owner)].max(initial=0, keepdims=True)
        return self.ledger_columns(ONE, self.noise / 2, largest, largest + 1)

    def client_columns(self, owner: np.ndarray, memory: Memory, ctx: Context) -> dict[str, np.ndarray]:
        return self.epsilon_columns(np.ones(len(owner)), self.noise / 2, Ledger.load(memory).of(owner))
