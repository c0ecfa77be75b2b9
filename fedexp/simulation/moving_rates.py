"""Learning rates that a schedule changes: columns of metrics.csv, absent where rates are constant."""

from fedexp.simulation.setup.experiment import Experiment


def scheduled_rates(exp: Experiment, round: int) -> dict[str, float]:
    """`lr` of the clients and `server_lr` in a round, each only if it has a schedule."""
    rates = {
        "lr": exp.schedule.rate(exp.local, round),
        "server_lr": exp.server_schedule.rate(exp.server_optimizer, round),
    }
    return {name: rate for name, rate in rates.items() if rate is not None}
