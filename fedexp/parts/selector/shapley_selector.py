"""The base of selectors that use Shapley values: the values of a round, and their running mean for each client.

Players are the participants whose updates arrived and are finite. An update that the server drops changes nothing, so
its client's value in the round is 0. Coalitions are averaged with the aggregator's own weights.
Columns of a round: `method`; `coalitions` that were evaluated; `converged`, by the rule in `shapley.stop`; `error`, the
largest error if the exact values are known; `standard_error`, the largest standard error in units of the spread of the
round's values; `sure`, a lower bound of the confidence that the clients which the selector now ranks first are those
that exact values would rank first, with the errors of all rounds. A cell is empty if the number is unknown: `sure`
before all clients have a value, and for selectors without a ranking.
Legend: N clients, C uploads, M players, R coalitions.
"""

import time
from typing import Annotated, Any

import numpy as np
import torch

from fedexp.maths.shapley.estimate import Estimate, RankingConfidence, Shapley
from fedexp.maths.shapley.ranking.budget import EXACT_AT_MOST, SURROGATE_AT_MOST, min_coalitions
from fedexp.maths.shapley.ranking.ranking_confidence import mean_variance, top_confidence
from fedexp.maths.shapley.surrogate.smooth import mixture_weights
from fedexp.parts import ConfigError, Context, Memory, Range, Selector, Uploads


def coalition_mix(members: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Rows that average the players of each coalition: `[R, 1 + M]` over the model before and each player's model.

    `members` is bool `[R, M]`, `share [M]` are the players' weights; a coalition without weight gives the model before.
    """
    weight = mixture_weights(members, share)
    return np.concatenate([~weight.any(axis=1, keepdims=True), weight], axis=1)


def round_values(
    shapley: Shapley, uploads: Uploads, ctx: Context, confidence: RankingConfidence | None = None
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Shapley values of the uploads and their standard errors (NaN if unknown), float64 [C]; and columns to record.

    `confidence` maps values and errors `[C]` to the confidence in the ranking that they lead to.
    """
    start = time.perf_counter()
    usable = (uploads.owner >= 0) & uploads.is_finite()
    players = uploads.where(usable)
    before = ctx.models[0].flat
    rows, share = torch.cat([before[None], before + players.delta]), ctx.validation.shares(players)

    def scatter_to_uploads(player_values: np.ndarray | None) -> np.ndarray:
        upload_values = np.zeros(len(uploads.owner))
        upload_values[usable] = np.nan if player_values is None else player_values
        return upload_values

    size = min(shapley.examples or ctx.validation.size, ctx.validation.size)

    def utilities(members: np.ndarray, positions: range) -> np.ndarray:
        return -ctx.validation.mixture_losses(coalition_mix(members, share), rows, positions)

    estimate = shapley.estimate(
        len(players.owner),
        utilities,
        ctx.rng("shapley"),
        confidence and (lambda values, errors: confidence(scatter_to_uploads(values), scatter_to_uploads(errors))),
        share=share,
        examples=size,
    )
    values, errors = scatter_to_uploads(estimate.values), scatter_to_uploads(estimate.errors)
    extra_columns = {"sure": confidence and confidence(values, errors), "shapley_s": time.perf_counter() - start}
    return values, errors, estimate_columns(estimate) | extra_columns


def estimate_columns(estimate: Estimate) -> dict[str, Any]:
    """The columns of metrics.csv that describe an estimate."""
    return {
        "method": estimate.method,
        "coalitions": estimate.coalitions,
        "converged": int(estimate.converged),
        "error": estimate.error,
        "standard_error": estimate.relative_error,
    }


def running_mean(memory: Memory, clients: int, owner: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """New means and counts, each [N]: N_k += 1, SV_k <- ((N_k - 1) SV_k + value) / N_k; `owner [C]`, `values [C]`."""
    mean, count = means_and_counts(memory, clients)
    mean, count = mean.copy(), count.copy()
    count[owner] += 1
    mean[owner] += (values - mean[owner]) / count[owner]
    return mean, count


def means_and_counts(memory: Memory, clients: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean Shapley value and number of participations of every client, each [N]; zeros at first."""
    if "mean" not in memory:
        return np.zeros(clients), np.zeros(clients, dtype=np.int64)
    return memory["mean"].numpy(), memory["count"].numpy()


def variances(memory: Memory, count: np.ndarray, owner: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """The variances `[N]` of the new means by sampling, given `count [N]` and the `errors [C]` of `owner [C]`."""
    variance = memory["variance"].numpy().copy() if "variance" in memory else np.zeros(len(count))
    variance[owner] = mean_variance(variance[owner], count[owner], errors)
    return variance


class ShapleySelector(Selector):
    """Remembers every client's mean Shapley value, its variance by sampling, and its participations, each `[N]`."""

    count: Annotated[int, Range(1)]
    shapley: Shapley

    needs_validation = True
    averages_models = True
    needs_cohort = "averages the uploads of a cohort that began with one model"
    needs_one_model = "averages uploads with one global model"

    def check(self) -> None:
        if self.shapley.method == "exact" and self.count > EXACT_AT_MOST:
            raise ConfigError(
                f"{type(self).__name__}.count must be at most {EXACT_AT_MOST} with shapley.method=exact, which takes "
                f"2^count models, got {self.count}; use shapley.method=auto"
            )
        if self.shapley.method in ("auto", "surrogate") and self.count > SURROGATE_AT_MOST:
            raise ConfigError(
                f"{type(self).__name__}.count must be at most {SURROGATE_AT_MOST} with shapley.method="
                f"{self.shapley.method}, whose estimates of more say too little, got {self.count}; use "
                f"shapley.method=gtg or fewer participants"
            )
        if self.shapley.stop == "ranking" and type(self).scores is ShapleySelector.scores:
            raise ConfigError(
                f"{type(self).__name__}.shapley.stop must be values or budget, got ranking: this selector draws "
                "its clients and ranks none; use selector=greedyfed or ucb for that"
            )
        bound, needed = self.shapley.coalitions, min_coalitions(self.count)
        if bound is not None and bound < needed:
            raise ConfigError(
                f"{type(self).__name__}.shapley.coalitions must be at least {needed} for {self.count} participants, "
                f"got {bound}; use null for what is affordable"
            )

    def scores(self, mean: np.ndarray, count: np.ndarray, ctx: Context) -> np.ndarray | None:
        """The scores `[N]` of the next ranking, of `mean [N]` and `count [N]`; None without a ranking, or not yet."""
        return None

    def observe(self, uploads: Uploads, memory: Memory, ctx: Context) -> Memory:
        clients = uploads.owner >= 0
        owner = uploads.owner[clients]

        def confidence(values: np.ndarray, errors: np.ndarray) -> float | None:
            mean, count = running_mean(memory, ctx.clients, owner, values[clients])
            scores = self.scores(mean, count, ctx)
            if scores is None:
                return None
            return top_confidence(scores, np.sqrt(variances(memory, count, owner, errors[clients])), self.count)

        values, errors, columns = round_values(self.shapley, uploads, ctx, confidence)
        mean, count = running_mean(memory, ctx.clients, owner, values[clients])
        variance = variances(memory, count, owner, errors[clients])
        learnt = {"mean": mean, "count": count, "variance": variance}
        return {**memory, **{name: torch.from_numpy(array) for name, array in learnt.items()}, "columns": columns}
