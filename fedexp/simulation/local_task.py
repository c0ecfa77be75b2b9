"""The training task of a round's participants."""

import torch

from fedexp.core.values import Memory, Plan
from fedexp.parts.context import Context
from fedexp.simulation.checks.contract_checks import check_call
from fedexp.simulation.setup.experiment import Experiment
from fedexp.training.client.batches import Batches
from fedexp.training.loop.trainer import Task


def make_task(
    exp: Experiment, received: torch.Tensor, plan: Plan, batches: tuple[Batches, ...], memory: Memory, ctx: Context
) -> Task:
    """Makes the training task of a plan's participants from the rows that they `received [C, D]`."""
    lr = exp.schedule.rate(exp.local, ctx.round)
    rule = exp.local.at(lr)
    start, anchor = check_call(exp, "local", rule.begin, received, plan.owner, memory, ctx)
    reference_rows = (
        check_call(exp, "local", rule.reference_models, received, plan.owner, memory, ctx) if rule.compares else None
    )
    counts = torch.from_numpy(ctx.clients_data.class_counts(plan.owner)).to(received) if rule.counts_classes else None
    return Task(start, anchor, plan, batches, exp.seed, ctx.round, lr, reference_rows=reference_rows, counts=counts)
