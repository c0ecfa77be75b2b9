"""A canary audit in one run (Steinke, Nasr, Jagielski 2023, arXiv 2305.08846): tests the promised privacy.

Canaries are spread over the honest clients; a coin decides for each whether its client trains on it. An attacker then
guesses which were trained on: those with the highest scores are guessed in, those with the lowest out (half of
`guesses` each, a tenth of all canaries by default; fixed beforehand, so that the result cannot influence it). If the
guesses are better than an epsilon allows, that epsilon is refuted: `bound`.

Scores: `uploads` sums over the rounds how much of each canary's gradient at the received model is in its client's
upload (`traces`). A server that knows all other examples can do this; DP-SGD promises protection even from it. `loss`
is how much lower the canary's loss is than under the first model, which anybody who has the models can compute.

A canary is one example. With `privacy=client_central`, whose ledger counts a client more or less, the epsilon that is
compared is that of half the noise: an example moves its client's update by up to twice the clip.

As in the ledger, the numbers of the clients' examples are taken as public. The bound holds for the line of one round;
to read many lines and quote the largest would be choosing by the result.
"""

from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
import torch

from fedexp.parts import Audit, Canaries, Columns, ConfigError, Context, Facts, Memory, Range, Split, Uploads
from fedexp.parts.audit.bound import guess_inclusion, lower_bound
from fedexp.parts.audit.traces import gradient_coefficients

COLUMNS = ("advantage", "epsilon_lower", "correct", "guesses")
MIN_GUESSES = 3  # guesses of each kind: nothing is refuted at 95 % with fewer than five guesses, all right


class CanaryAudit(Audit):
    """`count` canaries; `guesses` is the share of them that is guessed, half of it in and half of it out."""

    needs_classes = True

    count: Annotated[int, Range(1)] = 1000
    example: Literal["noise", "mislabelled"] = "noise"
    score: Literal["uploads", "loss"] = "uploads"
    guesses: Annotated[float, Range(0, 1, low_open=True)] = 0.2

    @property
    def needs_uploads(self) -> bool:
        return self.score == "uploads"

    @property
    def guesses_per_side(self) -> int:
        """Number of canaries guessed to be included; as many are guessed not to be."""
        return int(self.guesses * self.count / 2 + 1e-9)

    def check(self) -> None:
        if self.guesses_per_side < MIN_GUESSES:
            raise ConfigError(
                f"CanaryAudit.count must leave at least {MIN_GUESSES} guesses of each kind, but "
                f"guesses={self.guesses:g} of {self.count} canaries are {self.guesses_per_side}; raise it"
            )

    def refuse(self, facts: Facts) -> None:
        if self.example == "mislabelled" and self.count > facts.train_size:
            raise ConfigError(
                f"audit.count must be at most the {facts.train_size} training examples that can be mislabelled, got "
                f"{self.count}; lower it or use audit.example=noise"
            )

    def plant(self, train: Split, clients: np.ndarray, classes: int, rng: np.random.Generator) -> Canaries:
        if not len(clients):
            raise ConfigError("audit=canaries needs an honest client with examples; lower scenario.malicious")
        make = noise_examples if self.example == "noise" else mislabel_examples
        x, y = make(train, self.count, classes, rng)
        owner = np.sort(clients[np.arange(self.count) % len(clients)])
        return Canaries(len(train.y) + np.arange(self.count), x, y, owner, rng.random(self.count) < 0.5)

    def observe(self, uploads: Uploads, memory: Memory, ctx: Context) -> Memory:
        if not self.needs_uploads:
            return memory
        planted, jobs = ctx.audit.canaries, []
        finite_rows = uploads.is_finite()
        for row, owner in enumerate(uploads.owner.tolist()):
            positions = np.flatnonzero(planted.owner == owner)
            if len(positions) and finite_rows[row]:
                jobs.append((positions, partial(self._gradient_coefficients, positions, uploads, row, ctx)))
        round_scores = torch.zeros((self.count, 1), dtype=torch.float64, device=uploads.delta.device)
        ctx.audit.run_jobs(round_scores, jobs)
        return {"score": memory.get("score", torch.zeros_like(round_scores)) + round_scores}

    def _gradient_coefficients(self, positions: np.ndarray, uploads: Uploads, row: int, ctx: Context) -> torch.Tensor:
        index, shard = ctx.audit.canaries.index, ctx.plan(uploads.owner[row : row + 1]).shards[0]
        known_gradient = ctx.audit.gradient_sum(shard[shard < index[0]])
        return gradient_coefficients(
            ctx.audit.gradients(index[positions]), known_gradient, -uploads.delta[row, : ctx.layout.parameters]
        )[:, None]

    def empty_columns(self) -> Columns:
        return dict.fromkeys(COLUMNS)

    def report(self, memory: Memory, ctx: Context) -> Columns:
        planted = ctx.audit.canaries
        if self.needs_uploads:
            score = memory["score"][:, 0].cpu().numpy()
        else:
            first, now = (ctx.audit.example_losses(model, planted.index) for model in (ctx.first, ctx.models[0]))
            score = first - now
        inside, outside = (planted.included[positions] for positions in guess_inclusion(score, self.guesses_per_side))
        hits, false_alarms = int(inside.sum()), int((~inside).sum())
        correct = hits + int((~outside).sum())
        members, non_members = hits + int(outside.sum()), false_alarms + int((~outside).sum())
        advantage = hits / members - false_alarms / non_members if members and non_members else None
        lower = lower_bound(self.count, 2 * self.guesses_per_side, correct, ctx.audit.delta)
        return dict(zip(COLUMNS, (advantage, lower, correct, 2 * self.guesses_per_side), strict=True))

    def verdict(self, row: Columns) -> dict[str, Any]:
        lower, upper = row["audit.epsilon_lower"], row.get("privacy.epsilon_pld")
        assert lower is not None
        upper = float("inf") if upper is None else float(upper)
        violated = lower > upper
        ledger = f"ledger's upper bound {upper:.3g}" if np.isfinite(upper) else "the ledger promises nothing"
        words = f"lower bound {lower:.3g} (95 %), {ledger}; {row['audit.correct']:.0f} of {row['audit.guesses']:.0f} "
        words += "guesses right"
        return {
            "epsilon_lower": float(lower),
            "epsilon_upper": upper,
            "advantage": row["audit.advantage"],
            "violated": bool(violated),
            "statement": f"audit: {'VIOLATION: ' if violated else ''}{words}",
        }


def noise_examples(
    train: Split, count: int, classes: int, rng: np.random.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Random examples `[count, *shape]`, each entry drawn from all entries of all examples, and labels `[count]`.

    Their gradients have almost nothing in common with each other or with those of other examples.
    """
    source = rng.integers(train.x.numel(), size=(count, *train.x.shape[1:]))
    x = train.x.reshape(-1)[torch.from_numpy(source)]
    return x, torch.from_numpy(rng.integers(classes, size=count))


def mislabel_examples(
    train: Split, count: int, classes: int, rng: np.random.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Copies of random examples, `[count, *shape]`, each with a wrong label `[count]`."""
    source = torch.from_numpy(rng.permutation(len(train.y))[:count])
    wrong = torch.from_numpy(rng.integers(1, classes, size=count))
    return train.x[source], (train.y[source] + wrong) % classes
