"""The tables over methods: mean and standard deviation over seeds, as numbers and as texts."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd

from fedexp.maths.curve_metrics import SHARES
from fedexp.report.draw.markdown import Grid
from fedexp.report.read.measures import Numbers, Statistic, host_numbers, simulated_numbers, statistic, thresholds
from fedexp.report.read.methods import Method
from fedexp.report.read.runs import Run, shared_metric

_ACCURACY, _COUNT = 4, 1  # decimals
_COUNTS = ("selections", "rounds", "participants/round")
_DIGITS = 4  # that matter, of everything else


@dataclass(frozen=True)
class Table:
    """One statistic a method and quantity."""

    name: str
    title: str
    methods: Sequence[Method]
    rows: Sequence[dict[str, Statistic]]

    def frame(self) -> pd.DataFrame:
        """Full precision: mean, std and count of each quantity in columns of their own."""
        lines = []
        for method, row in zip(self.methods, self.rows, strict=True):
            line = {"method": method.label, "runs": len(method.runs), "unfinished": method.unfinished_count}
            for name, value in row.items():
                line |= {f"{name} mean": value.mean, f"{name} std": value.std, f"{name} count": value.count}
            lines.append(line)
        return pd.DataFrame(lines)

    def grid(self) -> Grid:
        """Rounded texts for people."""
        quantities = list(self.rows[0])
        lines = [
            [method.label, _seeds_text(method), *(cell_text(row[name], decimals(name)) for name in quantities)]
            for method, row in zip(self.methods, self.rows, strict=True)
        ]
        return Grid(("method", "seeds", *quantities), lines)


def make_tables(methods: Sequence[Method]) -> list[Table]:
    """The table of every method and, where a simulated clock ran, the one of the methods it ran for."""
    roa, toa = thresholds(methods, "roa"), thresholds(methods, "toa")
    metric = shared_metric([run for method in methods for run in method.runs])
    timed = [method for method in methods if all(run.has_simulated_clock for run in method.runs)]
    untimed = len(timed) < len(methods)
    hosts = toa if untimed else ()
    tables = [_table("results", "Results", methods, lambda run: host_numbers(run, metric, roa, hosts))]
    if timed:
        tables.append(_table("simulated", "Simulated time", timed, lambda run: simulated_numbers(run, metric, toa)))
    return tables


def cell_text(value: Statistic, digits: int | None = None) -> str:
    """`mean ± std (k/n)`: no std below two values, and k of n only where some runs do not have the number.

    With `digits` unknown the mean shows four digits.
    """
    share = f" ({value.count}/{value.runs})" if value.count < value.runs else ""
    if value.mean is None:
        return f"-{share}"
    if digits is None:
        digits = _four_digits(value.mean)
    elif digits == _COUNT and value.mean.is_integer() and not value.std:
        digits = 0
    spread = "" if value.std is None else f" ± {value.std:,.{digits}f}"
    return f"{value.mean:,.{digits}f}{spread}{share}"


def decimals(quantity: str) -> int | None:
    """The decimals that a quantity is shown with; None where they depend on its size."""
    if quantity.startswith(("final ", "best ")) and quantity.endswith(SHARES):
        return _ACCURACY
    return _COUNT if quantity in _COUNTS or quantity.startswith("RoA@") else None


def _four_digits(mean: float) -> int:
    if not math.isfinite(mean) or mean == 0:
        return 1
    return min(6, max(1, _DIGITS - 1 - math.floor(math.log10(abs(mean)))))


def _seeds_text(method: Method) -> str:
    notes = [f"{method.unfinished_count} unfinished"] if method.unfinished_count else []
    notes += [f"{len(method.repeats)} repeated"] if method.repeats else []
    return f"{len(method.runs)} ({', '.join(notes)})" if notes else str(len(method.runs))


def _table(name: str, title: str, methods: Sequence[Method], numbers: Callable[[Run], Numbers]) -> Table:
    rows = [_statistics([numbers(run) for run in method.runs]) for method in methods]
    shown = [quantity for quantity in rows[0] if any(row[quantity].count for row in rows)]
    return Table(name, title, methods, [{quantity: row[quantity] for quantity in shown} for row in rows])


def _statistics(runs: Sequence[Numbers]) -> dict[str, Statistic]:
    return {name: statistic([numbers[name] for numbers in runs]) for name in runs[0]}
