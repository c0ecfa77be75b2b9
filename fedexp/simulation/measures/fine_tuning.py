"""Models that clients tune to their own examples before they are measured: `evaluation.fine_tune_epochs`.

Legend: n sites, D entries of a row.
"""

from dataclasses import replace

import numpy as np
import torch

from fedexp.core.random_streams import streams
from fedexp.core.replace_unchecked import replace_unchecked
from fedexp.core.values import Plan
from fedexp.simulation import context
from fedexp.simulation.local_task import make_task
from fedexp.simulation.world import World
from fedexp.training.client.batches import draw_all


def tune_rows(world: World, rows: torch.Tensor, site: np.ndarray, number: int) -> torch.Tensor:
    """The models `rows [n, D]` after round `number`, each tuned on the training examples of its site `[n]`.

    A model that is no longer finite stays as it was. Trained in this process: for a job of the worker pool.
    """
    epochs, rule = world.exp.evaluation.fine_tune_epochs, world.exp.local.fine_tuning_rule
    if epochs is None or rule is None:
        return rows
    tuning = replace(world.with_rule(rule), partition=world.sites)
    ctx = context.make_context(tuning, number)
    plan = Plan(site, tuple(map(world.sites.shard, site.tolist())))
    draws = streams(world.exp.seed, number, "tuning", owner=site)
    rules = [replace_unchecked(rule, epochs=epochs, steps=None)] * len(site)
    batches = draw_all(rules, plan.shards, world.labels, draws)
    task, tuned = make_task(tuning.exp, rows, plan, batches, {}, ctx), rows.clone()
    for group in tuning.trainer.groups(task, 1):
        out = tuning.trainer.run(task, group)[:, : rows.shape[1]]
        positions = torch.from_numpy(group).to(rows.device)
        tuned[positions] = torch.where(out.isfinite().all(dim=1, keepdim=True), out, rows[positions])
    return tuned
