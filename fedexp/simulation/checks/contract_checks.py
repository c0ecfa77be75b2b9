"""Checks of what parts return, so that a mistake is reported for the part that made it.

Every check gives in words what is wrong, or None. Legend: C participants, N clients, M models, D entries of a model,
P trainable entries.
"""

import math
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np
import torch

from fedexp.core.errors import ConfigError, first_line
from fedexp.core.fields import describe_value, resembles
from fedexp.core.part import describe_choice
from fedexp.core.values import Plan, Uploads, Weights
from fedexp.parts.availability.contract import Timeline
from fedexp.simulation.checks.plan_checks import (
    check_arrivals,
    check_choice,
    check_participants,
    check_presence,
    check_timeline,
)
from fedexp.simulation.checks.value_checks import (
    check_layout,
    check_memory,
    check_models,
    check_rows,
    check_uploads,
    check_values,
)
from fedexp.simulation.setup.experiment import Experiment

P = ParamSpec("P")
Answer = TypeVar("Answer")
Check = Callable[..., str | None]


def check_call(exp: Experiment, role: str, method: Callable[P, Answer], *args: P.args, **kwargs: P.kwargs) -> Answer:
    """Calls a method of a role's part, and returns its answer.

    Raises:
        ConfigError: its contract does not allow this answer.
    """
    answer = method(*args, **kwargs)
    _refuse(exp, role, method, CHECKS.get(f"{role}.{method.__name__}", check_uploads), answer, *args)
    return answer


def checked_timeline(exp: Experiment, clients: int) -> Timeline:
    """When clients are there; of whatever it says of them the contract is checked.

    Raises:
        ConfigError: it is no function.
    """
    method = exp.availability.timeline
    timeline = method(clients, exp.seed)
    _refuse(exp, "availability", method, check_timeline, timeline)

    def look(owner: np.ndarray, now_s: float) -> tuple[np.ndarray, np.ndarray]:
        answer = timeline(owner, now_s)
        _refuse(exp, "availability", method, check_presence, answer, owner, now_s)
        return answer

    return look


def check_numbers(exp: Experiment, role: str, method: Callable[..., Any], answer: Any, *args: Any) -> None:
    """Checks an answer in which numbers are not finite, given what the method was called with.

    Raises:
        ConfigError: nothing that it was given explains that.
    """
    _refuse(exp, role, method, NUMBER_CHECKS[f"{role}.{method.__name__}"], answer, *args)


def _refuse(exp: Experiment, role: str, method: Callable[..., Any], check: Check, answer: Any, *args: Any) -> None:
    try:
        fault = check(answer, *args)
    except Exception as error:  # a check may fail on a value that no contract knows
        fault = (
            f"what its contract says, got {describe_value(answer)}, of which is said: {type(error).__name__}: "
            f"{first_line(error)}"
        )
    if fault:
        raise ConfigError(f"{describe_choice(role, exp.part(role))}: {method.__name__} must return {fault}")


def check_delivery(answer: Any, sent: Uploads, *args: Any) -> str | None:
    """Checks the uploads that arrived and the seconds that they took."""
    if fault := check_uploads(answer, sent, *args, kinds=(Uploads, float, dict)):
        return fault
    is_valid = type(answer[1]) in (int, float) and 0 <= answer[1] < math.inf
    return None if is_valid else f"seconds >= 0 as a float, got {describe_value(answer[1])}"


def check_assignment(answer: Any, before: tuple[Weights, ...], *args: Any) -> str | None:
    """Checks the models, the participants and the number of the model that each of them gets."""
    if fault := check_values(answer, tuple, Plan, np.ndarray, dict):
        return fault
    models, chosen, number, _ = answer
    if fault := check_models(models, before) or check_participants(chosen, args[-1]):
        return fault
    if number.shape != chosen.owner.shape or number.dtype.kind != "i":
        return f"a model's number for each of {len(chosen.owner)} participants, got {describe_value(number)}"
    odd = number[(number < 0) | (number >= len(models))]
    return f"numbers of models from 0 to {len(models) - 1}, got {odd[0]}" if len(odd) else None


def check_start(answer: Any, received: torch.Tensor, owner: np.ndarray, _: Any, ctx: Any) -> str | None:
    """Checks the start `[C, D]` and the anchor `[C, P]` of the participants, given what they received, `[C, D]`."""
    if not isinstance(answer, tuple) or len(answer) != 2:
        return f"(start, anchor), got {describe_value(answer)}"
    start = check_rows(answer[0], tuple(received.shape), received, "the start [C, D]")
    return start or check_rows(answer[1], (len(owner), ctx.layout.parameters), received, "the anchor [C, P]")


def check_reference_models(answer: Any, received: torch.Tensor, *_: Any) -> str | None:
    """Checks for other models' rows `[M, C, D]`, given what the participants received, `[C, D]`."""
    if isinstance(answer, torch.Tensor) and resembles(answer, received, (*answer.shape[:1], *received.shape)):
        return None
    return f"other models [M, C, D] {received.dtype} {['M', *received.shape]}, got {describe_value(answer)}".replace(
        "'", ""
    )


def check_finish(answer: Any, trained: Any, _: Any, ctx: Any) -> str | None:
    """Checks the messages `[C, W]` that clients send after training: the delta, and the rule's extra rows behind it."""
    if fault := check_values(answer, torch.Tensor, dict):
        return fault
    (clients, width), names = trained.rows.shape, ctx.traffic.extra_rows
    name = "the delta [C, D]" if not names else f"the delta [C, D] with a row [C, P] behind it for {', '.join(names)},"
    return check_rows(answer[0], (clients, width + len(names) * ctx.layout.parameters), trained.rows, name)


def check_dispatch(answer: Any, weights: Weights, owner: np.ndarray, *_: Any) -> str | None:
    """Checks for a row for each of `owner [C]`, of the clients' network, whatever the global model's layout."""
    if (
        isinstance(answer, torch.Tensor)
        and answer.dim() == 2
        and resembles(answer, weights.flat, (len(owner), answer.shape[1]))
    ):
        return None
    return f"a row {weights.flat.dtype} for each of {len(owner)} participants, got {describe_value(answer)}"


def check_model(answer: Any, weights: Weights, *_: Any) -> str | None:
    """Checks that a model's row is as long as its layout says."""
    return check_values(answer, Weights, dict) or check_layout(answer[0], weights)


def check_aggregate(answer: Any, weights: Weights, voters: Uploads, *_: Any) -> str | None:
    """Checks a model that is not finite: it may be so if the model or uploads it was combined from are not moderate."""
    if not is_moderate(weights.flat) or not is_moderate(voters.delta):
        return None
    return f"finite numbers for {len(voters.owner)} finite uploads, got {count_nonfinite(answer[0].flat)}"


def check_server_step(answer: Any, weights: Weights, proposal: Weights, *_: Any) -> str | None:
    """Checks the server optimizer's model: no NaN from finite inputs; too high a rate may give infinite ones."""
    same = answer[0].flat is proposal.flat  # for which the aggregator answers
    if same or not answer[0].flat.isnan().any() or not is_moderate(weights.flat) or not is_moderate(proposal.flat):
        return None
    return f"finite numbers for a finite proposal, got {count_nonfinite(answer[0].flat)}"


def is_moderate(values: torch.Tensor) -> bool:
    """Whether these numbers (any shape) are small enough that sums and squares of them do not overflow."""
    return values.numel() == 0 or bool(values.abs().max() < 1e15)


def count_nonfinite(values: torch.Tensor) -> str:
    """How many of these numbers (any shape) are not finite."""
    return f"{int(values.isnan().sum())} NaN and {int(values.isinf().sum())} infinite of {values.numel()}"


def check_stop(answer: Any, *_: Any) -> str | None:
    """Checks for a reason to stop, or None, and a memory."""
    if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[0], str | None):
        return f"(a reason or None, memory), got {describe_value(answer)}"
    return check_memory(answer[1])


def check_regroup(answer: Any, before: tuple[Weights, ...], *_: Any) -> str | None:
    """Checks the models, and in the memory the events: tuples of five values."""
    if fault := check_values(answer, tuple, dict) or check_models(answer[0], before):
        return fault
    events = answer[1].get("events", ())
    odd = [events] if not isinstance(events, tuple) else [event for event in events if not _has_five_values(event)]
    return f"events as tuples (round, what, client, cluster, distance), got {odd[0]}" if odd else None


def _has_five_values(event: Any) -> bool:
    return isinstance(event, tuple) and len(event) == 5


CHECKS: dict[str, Check] = {  # by role and method; the steps of roles that change uploads have `check_uploads`
    "selector.choose": check_choice,
    "selector.observe": check_memory,
    "clustering.assign": check_assignment,
    "clustering.regroup": check_regroup,
    "local.begin": check_start,
    "local.reference_models": check_reference_models,
    "local.finish": check_finish,
    "local.receive": check_memory,
    "pacing.due": check_arrivals,
    "fleet.deliver": check_delivery,
    "privacy.spend": check_memory,
    "audit.observe": check_memory,
    "aggregator.dispatch": check_dispatch,
    "aggregator.combine": check_model,
    "server_optimizer.step": check_model,
    "stop.judge": check_stop,
}
NUMBER_CHECKS: dict[str, Check] = {  # of models in which numbers are not finite
    "aggregator.combine": check_aggregate,
    "server_optimizer.step": check_server_step,
}
