"""The colours of compared methods: those that a report of the same folders gives them."""

from collections.abc import Sequence

from fedexp.compare.pairing import MethodPair
from fedexp.report.draw import style
from fedexp.report.read.methods import group_runs
from fedexp.report.read.runs import Run


def method_colors(method_pairs: Sequence[MethodPair], runs: Sequence[Run]) -> list[str]:
    """The colour of each pair's A, then that of B, among all runs in the order in which a report takes them up."""
    by_folder = {
        run.folder.resolve(): style.color(method)
        for method in group_runs(runs)
        for run in (*method.runs, *method.repeats)
    }
    compared = [*(method_pair.pairs[0][0] for method_pair in method_pairs), method_pairs[0].pairs[0][1]]
    return [by_folder[run.folder.resolve()] for run in compared]
