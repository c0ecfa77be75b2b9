"""The first lines of a run: its parts, its size, and settings that have no effect."""

from collections.abc import Iterator

from fedexp.core.part import option
from fedexp.simulation.setup.experiment import Experiment

GROUPS = ("dataset", "federation", "model", "local", "selector", "aggregator")


def lines(exp: Experiment, clients: int) -> Iterator[str]:
    """Describes the chosen parts and how many of the `clients` take part; notes a selector that has no choice."""
    yield " ".join(f"{group}={option(getattr(exp, group))}" for group in GROUPS)
    participants = exp.selector.clients_per_round(clients)
    participation = f"{clients} clients" if participants is None else f"{participants} of {clients} clients a round"
    yield f"{_with_unit(exp.rounds, 'round')}, {participation}, {_local_work(exp)} of batches of {exp.local.batch_size}"
    if participants == clients and exp.selector.learns:
        yield (
            f"selector={option(exp.selector)} has nothing to choose: all {clients} clients take part in every round; "
            "lower scenario.participants or raise scenario.clients"
        )


def _local_work(exp: Experiment) -> str:
    if exp.local.steps is not None:
        return _with_unit(exp.local.steps, "step")
    if isinstance(exp.local.epochs, tuple):
        return "{} to {} epochs".format(*exp.local.epochs)
    return _with_unit(exp.local.epochs or 0, "epoch")


def _with_unit(number: float, unit: str) -> str:
    return f"{number:g} {unit}" if number == 1 else f"{number:g} {unit}s"
