"""Checks of a round's models for numbers that are not finite, all with one look at the device.

A GPU does what it is asked for later, and the host waits whenever it reads a number. So each model is noted when it is
made, and all of them are looked at together. Legend: D entries of a model.
"""

from collections.abc import Callable, Iterable
from functools import partial
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

import torch

from fedexp.core.device_arrays import is_finite_row
from fedexp.core.errors import RunError
from fedexp.core.values import Memory, Weights
from fedexp.simulation.checks.contract_checks import check_call, check_numbers
from fedexp.simulation.setup.experiment import Experiment

P = ParamSpec("P")
Answer = TypeVar("Answer", bound=tuple[Weights, Memory])


class PendingChecks:
    """Models that were not looked at yet. At the end of a `with` block they are, also where the block fails.

    So whoever made the first that is not finite is named, and not the part that could not go on with it.
    """

    def __init__(self) -> None:
        self.pending: list[tuple[torch.Tensor, Callable[[], None]]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if kind is None or issubclass(kind, Exception):
            self.settle()

    def call(
        self, exp: Experiment, role: str, method: Callable[P, Answer], *args: P.args, **kwargs: P.kwargs
    ) -> Answer:
        """Calls a method that makes a model, as `check_call` does; its numbers are looked at later."""
        answer = check_call(exp, role, method, *args, **kwargs)
        self.pending.append((answer[0].flat, partial(check_numbers, exp, role, method, answer, *args)))
        return answer

    def expect_finite(self, models: Iterable[Weights], number: int) -> None:
        """Notes the models after the round of this number, which must be finite whoever made them."""
        self.pending += [(weights.flat, partial(report_divergence, number)) for weights in models]

    def settle(self) -> None:
        """Looks at all models that were noted, in their order, and forgets them with all that they came from.

        Raises:
            ConfigError: a part made numbers that are not finite of moderate ones.
            RunError: a model after the round is not finite.
        """
        pending, self.pending = self.pending, []
        rows = {id(row): row for row, _ in pending}
        flags = torch.stack([is_finite_row(row) for row in rows.values()]).tolist() if rows else []
        is_finite = dict(zip(rows, flags, strict=True))
        for row, report in pending:
            if not is_finite[id(row)]:
                report()


def report_divergence(number: int) -> Any:
    """Raises that the models after the round of this number are not finite."""
    raise RunError(
        f"the global model is not finite after round {number}; the state of round {number - 1} is "
        "kept. Lower local.lr or server_optimizer.lr, or clip the updates"
    )
