"""What the selectors that learn Shapley values share: the values of a round, and their running mean per client.

Players are the participants whose updates arrived and are finite; an update that the server drops changes nothing, so
its client's value of the round is 0. Coalitions are averaged with the aggregator's own weights.
Columns of a round: `method`; `coalitions` that were asked for; `converged`, by the rule that `shapley.stop` names;
`error`, the largest error where the exact values are known; `standard_error`, the largest standard error in units of
the spread of the round's values; `sure`, at least how sure it is that the clients which the selector now puts first are
those that exact values would have put there, all rounds' errors counted. An empty cell is what is not known: `sure`
before everybody has a value, and where a selector has no ranking.
Legend: N clients, C uploads, M players, R coalitions.
"""

import time
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch

from fedexp.core.errors import ConfigError
from fedexp.core.part import Range
from fedexp.core.values import Memory, Uploads, finite
from fedexp.maths.shapley.affordable import EXACT_AT_MOST, least
from fedexp.maths.shapley.estimate import Estimate, Shapley, Sure
from fedexp.maths.shapley.settled import mean_variance, top_sure
from fedexp.maths.shapley.smooth import mixture_weights
from fedexp.parts.context import Context
from fedexp.parts.selector.contract import Selector


def coalition_mix(members: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Rows that average the players of each coalition: `[R, 1 + M]` over (the model before, each player's model).

    `members` is bool `[R, M]`, `share [M]` what each counts; a coalition without weight keeps the model before.
    """
    weight = mixture_weights(members, share)
    return np.concatenate([~weight.any(axis=1, keepdims=True), weight], axis=1)


def round_values(
    shapley: Shapley, uploads: Uploads, ctx: Context, sure: Sure | None = None
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Shapley values of the uploads and their standard errors (NaN: unknown), float64 [C]; what to record of them.

    `sure` says of values and errors `[C]` how sure the ranking is that they lead to.
    """
    begun = time.perf_counter()
    usable = (uploads.owner >= 0) & finite(uploads.delta)
    players = uploads.where(usable)
    before = ctx.models[0].flat
    rows, share = torch.cat([before[None], before + players.delta]), ctx.validation.shares(players)

    def of_all(own: np.ndarray | None) -> np.ndarray:
        whole = np.zeros(len(uploads.owner))
        whole[usable] = np.nan if own is None else own
        return whole

    size = min(shapley.examples or ctx.validation.size, ctx.validation.size)

    def utilities(members: np.ndarray, places: range) -> np.ndarray:
        return -ctx.validation.mixture_losses(coalition_mix(members, share), rows, places)

    found = shapley.estimate(
        len(players.owner),
        utilities,
        ctx.rng("shapley"),
        sure and (lambda values, errors: sure(of_all(values), of_all(errors))),
        share=share,
        examples=size,
    )
    values, errors = of_all(found.values), of_all(found.errors)
    how_sure = {"sure": sure and sure(values, errors), "shapley_s": time.perf_counter() - begun}
    return values, errors, recorded(found) | how_sure


def recorded(found: Estimate) -> dict[str, Any]:
    """What the columns say of an estimate."""
    return {
        "method": found.method,
        "coalitions": found.coalitions,
        "converged": int(found.converged),
        "error": found.error,
        "standard_error": found.relative_error,
    }


def running_mean(memory: Memory, clients: int, owner: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """N_k += 1 and SV_k <- ((N_k - 1) SV_k + value) / N_k for these clients: new means and counts, each [N]."""
    mean, count = means_and_counts(memory, clients)
    mean, count = mean.copy(), count.copy()
    count[owner] += 1
    mean[owner] += (values - mean[owner]) / count[owner]
    return mean, count


def means_and_counts(memory: Memory, clients: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean Shapley value and number of participations of every client, each [N]; zeros at the start."""
    if "mean" not in memory:
        return np.zeros(clients), np.zeros(clients, dtype=np.int64)
    return memory["mean"].numpy(), memory["count"].numpy()


def variances(memory: Memory, count: np.ndarray, owner: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """How far sampling lets the new means be off: their variances `[N]`; 0 for what older runs did not remember."""
    variance = memory["variance"].numpy().copy() if "variance" in memory else np.zeros(len(count))
    variance[owner] = mean_variance(variance[owner], count[owner], errors)
    return variance


@dataclass(frozen=True, kw_only=True)
class ShapleySelector(Selector):
    """Remembers every client's mean Shapley value, its variance by sampling and of how many: each `[N]`."""

    count: Annotated[int, Range(1)]
    shapley: Shapley

    needs_validation = True
    averages_models = True
    needs_one_model = "averages uploads with one global model"

    def check(self) -> None:
        if self.shapley.method == "exact" and self.count > EXACT_AT_MOST:
            raise ConfigError(
                f"{type(self).__name__}.count must be at most {EXACT_AT_MOST} with shapley.method=exact, which takes "
                f"2^count models, got {self.count}; use shapley.method=auto"
            )
        bound, needed = self.shapley.coalitions, least(self.count)
        if bound is not None and bound < needed:
            raise ConfigError(
                f"{type(self).__name__}.shapley.coalitions must be at least {needed} for {self.count} participants, "
                f"got {bound}; use null for what is affordable"
            )

    def scores(self, mean: np.ndarray, count: np.ndarray, ctx: Context) -> np.ndarray | None:
        """What clients will be ranked by in the next round, `[N]`; None where they are not, or not all can be yet."""
        return None

    def observe(self, uploads: Uploads, memory: Memory, ctx: Context) -> Memory:
        clients = uploads.owner >= 0
        owner = uploads.owner[clients]

        def sure(values: np.ndarray, errors: np.ndarray) -> float | None:
            mean, count = running_mean(memory, ctx.clients, owner, values[clients])
            scores = self.scores(mean, count, ctx)
            if scores is None:
                return None
            return top_sure(scores, np.sqrt(variances(memory, count, owner, errors[clients])), self.count)

        values, errors, columns = round_values(self.shapley, uploads, ctx, sure)
        mean, count = running_mean(memory, ctx.clients, owner, values[clients])
        variance = variances(memory, count, owner, errors[clients])
        learnt = {"mean": mean, "count": count, "variance": variance}
        if "mean" in memory and "variance" not in memory:  # a run begun before errors were remembered keeps its columns
            del learnt["variance"], columns["standard_error"], columns["sure"]
        return {**memory, **{name: torch.from_numpy(one) for name, one in learnt.items()}, "columns": columns}
