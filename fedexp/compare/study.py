"""All pairs of methods by all quantities: the rows of the comparison, notes on what was left out, and the ranks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedexp.compare import critical_difference, equality, quantities, statistics
from fedexp.compare.critical_difference import Ranks
from fedexp.compare.pairing import MethodPair
from fedexp.compare.quantities import Quantity
from fedexp.compare.statistics import PairedStatistics
from fedexp.core.errors import ConfigError
from fedexp.files.atomic import display_path
from fedexp.report.read import at_clients
from fedexp.report.read.runs import Run, shared_metric


@dataclass(frozen=True, eq=False)
class Row:
    """One quantity of one pair of methods; its p-values are corrected over all rows."""

    method_pair: MethodPair
    quantity: Quantity
    result: PairedStatistics


@dataclass(frozen=True, eq=False)
class Comparison:
    """The result of a comparison; `ranks` are those of more than two methods, by the first quantity (`ranked_by`)."""

    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    ranks: Ranks | None
    ranked_by: str

    def of(self, method_pair: MethodPair) -> list[Row]:
        return [row for row in self.rows if row.method_pair is method_pair]


def compare_methods(method_pairs: Sequence[MethodPair], names: Sequence[str]) -> Comparison:
    """Compares by the quantities with these names, or by the default ones if there are none.

    Raises:
        ConfigError: no quantity exists in all runs.
    """
    runs = [*{run.folder: run for method_pair in method_pairs for run in method_pair.runs}.values()]  # each counts once
    clock = quantities.clock_of(runs)
    metric = shared_metric(runs)
    chosen = [quantities.parse(name, clock or "", runs) for name in names] or quantities.default_quantities(runs, clock)
    chosen = [*{quantity.name: quantity for quantity in chosen}.values()]
    available, notes = [], [*_clock_notes(runs, clock, chosen), *_client_notes(runs, metric, chosen)]
    for quantity in chosen:
        reason = why_missing(quantity, method_pairs, clock)
        available += [] if reason else [quantity]
        notes += [f"{quantity.name} left out: {reason}"] if reason else []
    if not available:
        raise ConfigError(f"nothing is left to compare: {'; '.join(notes)}; name others with --measures")
    results = [
        (method_pair, quantity, compare_pairs(method_pair, quantity))
        for method_pair in method_pairs
        for quantity in available
    ]
    with_verdicts = statistics.add_verdicts([result for *_, result in results])
    rows = tuple(
        Row(method_pair, quantity, result)
        for (method_pair, quantity, _), result in zip(results, with_verdicts, strict=True)
    )
    return Comparison(rows, tuple(notes), _ranks(method_pairs, available[0]), available[0].name)


def compare_pairs(method_pair: MethodPair, quantity: Quantity) -> PairedStatistics:
    """One quantity of one pair of methods, not corrected."""
    a, b = ([quantity.of(pair[side]) for pair in method_pair.pairs] for side in (0, 1))
    return statistics.compare(a, b, higher_is_better=quantity.higher_is_better)


def why_missing(quantity: Quantity, method_pairs: Sequence[MethodPair], clock: str | None) -> str:
    """Why a quantity cannot be compared; empty if it can."""
    if quantity.name.startswith("toa@") and clock is None:
        return "some runs have a simulated clock and some have not"
    for a, b in (pair for method_pair in method_pairs for pair in method_pair.pairs):
        if quantity.at_clients and not equality.have_same_split(a, b):
            return f"the clients of seed {a.seed} measure models on different examples"
        if quantity.name.endswith("_auc") and a.rounds[-1] != b.rounds[-1]:
            return f"the runs of seed {a.seed} have {a.rounds[-1]} and {b.rounds[-1]} rounds"
        for run in (a, b):
            if quantity.may_be_missing and not np.isfinite(run.column(f"test_{run.metric}")).any():
                return f"{display_path(run.folder)} has no test {run.metric}"
            value = quantity.of(run)
            if (value is None and not quantity.may_be_missing) or (value is not None and not np.isfinite(value)):
                lack = "none" if value is None else "an infinite one"
                alone = ": its clients train alone, and share no model" if equality.training(run) == "local" else ""
                return f"{display_path(run.folder)} has {lack}{alone if quantity.name.startswith('site_') else ''}"
    return ""


def _client_notes(runs: Sequence[Run], metric: str, chosen: Sequence[Quantity]) -> list[str]:
    """That models were measured at the clients, where no quantity is about it."""
    names = [name for name in at_clients.names(metric) if name.startswith("personal_")]
    measured = all(np.isfinite(run.column(names[0])).any() for run in runs)
    if not measured or any(quantity.at_clients for quantity in chosen):
        return []
    return [f"models were measured at the clients, too: --measures {','.join(names)}"]


def _clock_notes(runs: Sequence[Run], clock: str | None, chosen: Sequence[Quantity]) -> list[str]:
    if clock != "host_s":
        return []
    if not any(quantity.name.startswith("toa@") for quantity in chosen):
        return ["toa is compared where a simulated clock ran, or by --measures: the host's clock differs each time"]
    devices = sorted({str((run.summary or {}).get("device")) for run in runs})
    elsewhere = f", and the devices differ: {', '.join(devices)}" if len(devices) > 1 else ""
    return [f"toa counts seconds of the host's clock, which other work on the machine disturbs{elsewhere}"]


def _ranks(method_pairs: Sequence[MethodPair], quantity: Quantity) -> Ranks | None:
    """Ranks over the blocks that all methods have: the runs of B with which every method is paired."""
    if len(method_pairs) < 2:
        return None
    sides = [{b.folder: (a, b) for a, b in method_pair.pairs} for method_pair in method_pairs]
    shared = [folder for folder in sides[0] if all(folder in side for side in sides)]
    if not shared:
        return None
    lines = [[*(side[folder][0] for side in sides), sides[0][folder][1]] for folder in shared]
    values = np.array([[quantity.of(run) for run in line] for line in lines], dtype=np.float64)  # NaN where it is None
    return critical_difference.rank_methods(
        [*(method_pair.a for method_pair in method_pairs), method_pairs[0].b],
        values,
        higher_is_better=quantity.higher_is_better,
    )
