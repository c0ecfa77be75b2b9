"""The participants' own models and their ensemble, on the test data (`evaluation.local_models`).

`local.test_accuracy` is the mean of the accuracies of the models that the round's clients trained; the ensemble answers
with the mean of their probabilities. A client without examples, or whose model is not finite, is left out.
Legend: C participants, D entries of a row.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn import functional as F

from fedexp.core.device_arrays import finite
from fedexp.core.values import SERVER, State, Uploads, Weights
from fedexp.process.device_clock import synchronized_time
from fedexp.simulation.personal_columns import private_columns, restore_personal
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.start import dispatch
from fedexp.simulation.world import World

COLUMNS = ("local.test_accuracy", "ensemble.test_accuracy", "ensemble.test_loss")


def columns(exp: Experiment) -> tuple[str, ...]:
    """The names of the columns; none unless they are asked for."""
    return COLUMNS if exp.evaluation.tests_local_models else ()


def score_later(
    exp: Experiment, world: World, before: State, after: State, sent: Uploads
) -> Callable[[], tuple[dict, float]]:
    """Starts scoring the models trained in the round between these states; idle workers take the jobs.

    The result gives their columns, and the seconds of computing that they took.
    """
    if not columns(exp):
        return lambda: ({}, 0.0)
    rows = trained_rows(exp, world, before, after, sent)
    parts = world.scorer.parts(world.test) if len(rows) else []
    work = world.defer_rows([partial(_sums, world, rows, part) for part in parts], 4)

    def result() -> tuple[dict[str, Any], float]:
        world.pool.finish(work)
        *sums, seconds = work.out.sum(dim=0).tolist()
        if not len(rows):
            return dict.fromkeys(COLUMNS), seconds
        correct, ensemble_correct, loss = (value / len(world.test) for value in sums)
        return dict(zip(COLUMNS, (correct / len(rows), ensemble_correct, loss), strict=True)), seconds

    return result


def trained_rows(exp: Experiment, world: World, before: State, after: State, sent: Uploads) -> torch.Tensor:
    """The clients' own models at the end of the round between these states, `[C, D]`, private columns included."""
    start = dispatch(exp, world, before.models, sent.model, sent.owner, before.memory)
    rows = restore_personal(exp, world.layout, sent.owner, start, before.memory) + sent.delta
    private = torch.from_numpy(private_columns(exp, world.layout)).to(rows.device)
    rows[:, private] = restore_personal(exp, world.layout, sent.owner, rows, after.memory)[:, private]
    usable = (sent.owner != SERVER) & (sent.examples > 0) & finite(rows)
    return rows[torch.from_numpy(usable).to(rows.device)]


def _sums(world: World, rows: torch.Tensor, part: slice) -> torch.Tensor:
    """Right answers of all models `rows [C, D]` on a chunk of the test data, of the ensemble, its loss sum, seconds."""
    begin = synchronized_time(rows.device)
    inputs, labels = world.test.inputs(part), world.test.y[part]
    logits = torch.stack([world.scorer.logits(Weights(row, world.layout), inputs) for row in rows])
    ensemble = F.log_softmax(logits, dim=2).logsumexp(dim=0) - math.log(len(rows))
    correct = (logits.argmax(dim=2) == labels).sum().double()
    ensemble_correct = (ensemble.argmax(dim=1) == labels).sum().double()
    loss = F.nll_loss(ensemble, labels, reduction="sum").double()
    seconds = torch.full_like(loss, synchronized_time(rows.device) - begin)
    return torch.stack([correct, ensemble_correct, loss, seconds]).clone()
