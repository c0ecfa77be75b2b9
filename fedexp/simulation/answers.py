"""Checks of what parts return, so that a mistake is reported for the part that made it.

Every check gives in words what is wrong, or None. Legend: C participants, N clients, M models, D entries of a model,
P trainable entries.
"""

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import torch

from fedexp.config import roles
from fedexp.core.errors import ConfigError, first_line
from fedexp.core.fields import resembles, told
from fedexp.core.part import Part, named
from fedexp.core.values import SERVER, Plan, Uploads, Weights
from fedexp.simulation.contents import memory, of_layout, rows, several, several_models, uploads
from fedexp.simulation.experiment import Experiment

Check = Callable[..., str | None]


def asked(exp: Experiment) -> Experiment:
    """The same experiment with parts whose return values are checked."""
    return cast(Experiment, Asked(exp))


class Asked:
    """Wraps an experiment; its parts are wrapped in `CheckedPart`."""

    def __init__(self, exp: Experiment) -> None:
        self._exp = exp
        self._parts = {role: Checked(role, exp.part(role), checks) for role, checks in checks_by_role().items()}

    def __getattr__(self, name: str) -> Any:
        return self._parts.get(name) or getattr(self._exp, name)

    def part(self, role: str) -> Any:
        return self._parts.get(role) or self._exp.part(role)


class Checked:
    """Wraps a part; raises ConfigError where a method returns what its contract does not allow."""

    def __init__(self, role: str, part: Part, checks: dict[str, Check]) -> None:
        self._role, self._part, self._checks = role, part, checks

    def at(self, lr: float | None) -> "Checked":
        """The wrapped part at another learning rate."""
        return Checked(self._role, cast(Any, self._part).at(lr), self._checks)

    def __getattr__(self, name: str) -> Any:
        method, check = getattr(self._part, name), self._checks.get(name)
        if check is None:
            return method

        def answer(*given: Any) -> Any:
            came = method(*given)
            if fault := found(check, came, *given):
                raise ConfigError(f"{named(self._role, self._part)}: {name} must return {fault}")
            return came

        return answer


def found(check: Check, came: Any, *given: Any) -> str | None:
    """Runs a check; describes the fault, also where the check itself fails on the value."""
    try:
        return check(came, *given)
    except Exception as error:
        return (
            f"what its contract says, got {told(came)}, of which is said: {type(error).__name__}: {first_line(error)}"
        )


def plan(came: Any, _: Any, ctx: Any) -> str | None:
    """Checks that a plan names existing clients, each once, with an array of example numbers each."""
    if fault := several(came, Plan, dict):
        return fault
    owner, shards = came[0].owner, came[0].shards
    if not isinstance(owner, np.ndarray) or owner.ndim != 1 or owner.dtype.kind != "i":
        return f"a Plan whose owner is an array of whole numbers [C], got {told(owner)}"
    strangers = owner[(owner < SERVER) | (owner >= ctx.clients)]
    if len(strangers):
        return f"clients from 0 to {ctx.clients - 1}, got client {strangers[0]}"
    clients, times = np.unique(owner, return_counts=True)
    if (times > 1).any():
        return f"each client once, got client {clients[times > 1][0]} {times.max()} times"
    if len(shards) != len(owner) or any(
        not isinstance(one, np.ndarray) or one.dtype.kind not in "iu" for one in shards
    ):
        return f"a Plan with an array of example numbers a client, got {len(shards)} shards for {len(owner)} clients"
    importance = came[0].importance
    if importance is not None and not (len(importance) == len(owner) and (importance >= 0).all()):
        return f"a Plan whose importance is a number >= 0 a client, got {importance}"
    return None


def delivered(came: Any, given: Uploads, *rest: Any) -> str | None:
    """Checks the uploads that arrived and the seconds that they took."""
    if fault := uploads(came, given, *rest, kinds=(Uploads, float, dict)):
        return fault
    right = type(came[1]) in (int, float) and 0 <= came[1] < math.inf
    return None if right else f"seconds >= 0 as a float, got {told(came[1])}"


def assigned(came: Any, given: tuple[Weights, ...], *rest: Any) -> str | None:
    """Checks the models, the participants and the number of the model that each of them gets."""
    if fault := several(came, tuple, Plan, np.ndarray, dict):
        return fault
    models, chosen, number, _ = came
    if fault := several_models(models, given) or plan((chosen, {}), None, rest[-1]):
        return fault
    if number.shape != chosen.owner.shape or number.dtype.kind != "i":
        return f"a model's number for each of {len(chosen.owner)} participants, got {told(number)}"
    odd = number[(number < 0) | (number >= len(models))]
    return f"numbers of models from 0 to {len(models) - 1}, got {odd[0]}" if len(odd) else None


def begun(came: Any, received: torch.Tensor, owner: np.ndarray, _: Any, ctx: Any) -> str | None:
    """Checks the start `[C, D]` and the anchor `[C, P]` of the participants, given what they received, `[C, D]`."""
    if not isinstance(came, tuple) or len(came) != 2:
        return f"(start, anchor), got {told(came)}"
    start = rows(came[0], tuple(received.shape), received, "the start [C, D]")
    return start or rows(came[1], (len(owner), ctx.layout.parameters), received, "the anchor [C, P]")


def compared(came: Any, received: torch.Tensor, *_: Any) -> str | None:
    """Checks for other models' rows `[M, C, D]`, given what the participants received, `[C, D]`."""
    if isinstance(came, torch.Tensor) and resembles(came, received, (*came.shape[:1], *received.shape)):
        return None
    return f"other models [M, C, D] {received.dtype} {['M', *received.shape]}, got {told(came)}".replace("'", "")


def finished(came: Any, trained: Any, *_: Any) -> str | None:
    """Checks the deltas `[C, D]` that clients send after training."""
    return several(came, torch.Tensor, dict) or rows(
        came[0], tuple(trained.received.shape), trained.received, "the delta [C, D]"
    )


def dispatched(came: Any, weights: Weights, owner: np.ndarray, *_: Any) -> str | None:
    """Checks for a row for each of `owner [C]`, of the clients' network, whatever the global model's layout."""
    if (
        isinstance(came, torch.Tensor)
        and came.dim() == 2
        and resembles(came, weights.flat, (len(owner), came.shape[1]))
    ):
        return None
    return f"a row {weights.flat.dtype} for each of {len(owner)} participants, got {told(came)}"


def model(came: Any, weights: Weights, *_: Any) -> str | None:
    """Checks that a model's row is as long as its layout says."""
    return several(came, Weights, dict) or of_layout(came[0], weights)


def combined(came: Any, weights: Weights, voters: Uploads, *_: Any) -> str | None:
    """Checks that a model is finite if the model and the uploads it was combined from are finite and moderate."""
    if fault := model(came, weights):
        return fault
    if came[0].flat.isfinite().all() or not usual(weights.flat) or not usual(voters.delta):
        return None
    return f"finite numbers for {len(voters.owner)} finite uploads, got {wrong_numbers(came[0].flat)}"


def stepped(came: Any, weights: Weights, proposal: Weights, *_: Any) -> str | None:
    """Checks the server optimizer's model: no NaN from finite inputs; too high a rate may give infinite ones."""
    if fault := model(came, weights):
        return fault
    if not came[0].flat.isnan().any() or not usual(weights.flat) or not usual(proposal.flat):
        return None
    return f"finite numbers for a finite proposal, got {wrong_numbers(came[0].flat)}"


def usual(values: torch.Tensor) -> bool:
    """Whether these numbers (any shape) are small enough that sums and squares of them do not overflow."""
    return values.numel() == 0 or bool(values.abs().max() < 1e15)


def wrong_numbers(values: torch.Tensor) -> str:
    """How many of these numbers (any shape) are not finite."""
    return f"{int(values.isnan().sum())} NaN and {int(values.isinf().sum())} infinite of {values.numel()}"


def judged(came: Any, *_: Any) -> str | None:
    """Checks for a reason to stop, or None, and a memory."""
    if not isinstance(came, tuple) or len(came) != 2 or not isinstance(came[0], str | None):
        return f"(a reason or None, memory), got {told(came)}"
    return memory(came[1])


def regrouped(came: Any, given: tuple[Weights, ...], *_: Any) -> str | None:
    """Checks the models, and in the memory the events: tuples of five values."""
    if fault := several(came, tuple, dict) or several_models(came[0], given):
        return fault
    events = came[1].get("events", ())
    odd = [events] if not isinstance(events, tuple) else [one for one in events if not _five(one)]
    return f"events as tuples (round, what, client, cluster, distance), got {odd[0]}" if odd else None


def _five(event: Any) -> bool:
    return isinstance(event, tuple) and len(event) == 5


def checks_by_role() -> dict[str, dict[str, Check]]:
    """The checks of every role by method: of its contract, and of its step if it changes uploads."""
    steps = {role.name: {role.step: uploads} for role in roles.every() if role.step}
    return {role: steps.get(role, {}) | METHODS.get(role, {}) for role in (*METHODS, *steps)}


METHODS: dict[str, dict[str, Check]] = {
    "selector": {"choose": plan, "observe": memory},
    "clustering": {"assign": assigned, "regroup": regrouped},
    "local": {"begin": begun, "compared": compared, "finish": finished},
    "fleet": {"deliver": delivered},
    "privacy": {"spend": memory},
    "audit": {"observe": memory},
    "aggregator": {"dispatch": dispatched, "combine": combined},
    "server_optimizer": {"step": stepped},
    "stop": {"judge": judged},
}
