"""The first lines of a run: its parts, its size, and settings that have no effect."""

from collections.abc import Iterator

from fedexp.core.part import option
from fedexp.simulation.experiment import Experiment

GROUPS = ("dataset", "federation", "model", "local", "selector", "aggregator")


def lines(exp: Experiment, clients: int) -> Iterator[str]:
    """Describes the chosen parts and how many of the `clients` take part; notes a selector that has no choice."""
    yield " ".join(f"{group}={option(getattr(exp, group))}" for group in GROUPS)
    asked = exp.selector.asked(clients)
    who = f"{clients} clients" if asked is None else f"{asked} of {clients} clients a round"
    yield f"{_counted(exp.rounds, 'round')}, {who}, {_work(exp)} of batches of {exp.local.batch_size}"
    if asked == clients and exp.selector.learns:
        yield (
            f"selector={option(exp.selector)} has nothing to choose: all {clients} clients take part in every round; "
            "lower scenario.participants or raise scenario.clients"
        )


def _work(exp: Experiment) -> str:
    if exp.local.steps is not None:
        return _counted(exp.local.steps, "step")
    if isinstance(exp.local.epochs, tuple):
        return "{} to {} epochs".format(*exp.local.epochs)
    return _counted(exp.local.epochs or 0, "epoch")


def _counted(number: float, what: str) -> str:
    return f"{number:g} {what}" if number == 1 else f"{number:g} {what}s"
