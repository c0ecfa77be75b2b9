"""The privacy ledger of a report: epsilon and accuracy, and what each method promised at its end."""

from collections.abc import Sequence

from fedexp.report.draw import bands
from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.section import Section, section
from fedexp.report.read import epsilon
from fedexp.report.read.measures import statistic
from fedexp.report.read.methods import Method
from fedexp.report.topics import privacy_curves

_ENTRIES = {
    "epsilon_pld": "epsilon (PLD)",
    "epsilon_rdp": "epsilon (RDP)",
    "delta": "delta",
    "noise_multiplier": "noise multiplier",
}
_NOTE = (
    "Epsilon is that of the federation, spent up to a round, from the privacy loss distribution (PLD); the table has "
    "the accountant of Rényi divergences (RDP) beside it. Epsilon stands above the rounds where all ledgers agree; "
    "else a second drawing shows the accuracy by the epsilon spent, with methods without one as horizontal lines."
)


def build_section(methods: Sequence[Method]) -> Section | None:
    """Of the methods with a finite epsilon, beside those without one."""
    private_methods = [method for method in methods if any(epsilon.has_epsilon(run) for run in method.runs)]
    if not private_methods:
        return None
    name = epsilon.axis_label([run for method in private_methods for run in method.runs if epsilon.has_epsilon(run)])
    spec = bands.PlotSpec(name="epsilon_spent", title="Epsilon by round", vertical=name, zero=True)
    spent = bands.picture(spec, private_methods, bands.by_round(epsilon.COLUMN))
    pictures = [spent, *privacy_curves.pictures(methods)]
    return section(
        "privacy",
        "Privacy ledger",
        f"{_NOTE} {bands.NOTE}",
        pictures,
        [*_ledger_table(private_methods), *_promises_table(private_methods)],
    )


def _ledger_table(methods: Sequence[Method]) -> list[tuple[str, Grid]]:
    columns = {name: [_mean(method, entry) for method in methods] for entry, name in _ENTRIES.items()}
    shown_columns = {name: column for name, column in columns.items() if any(cell != "-" for cell in column)}
    rows = list(zip([method.label for method in methods], *shown_columns.values(), strict=True))
    return (
        [("The ledger at the end, mean over finished seeds", Grid(("method", *shown_columns), rows))]
        if shown_columns
        else []
    )


def _mean(method: Method, entry: str) -> str:
    mean = statistic([((run.summary or {}).get("privacy") or {}).get(entry) for run in method.runs]).mean
    return "-" if mean is None else f"{mean:.4g}"


def _promises_table(methods: Sequence[Method]) -> list[tuple[str, Grid]]:
    """What the runs say of themselves in words, the same words once."""
    labels_by_promise: dict[str, dict[str, None]] = {}
    for method in methods:
        for run in method.runs:
            if promise := ((run.summary or {}).get("privacy") or {}).get("promise"):
                labels_by_promise.setdefault(str(promise), {})[method.label] = None
    rows = [(promise, "; ".join(labels)) for promise, labels in labels_by_promise.items()]
    return [("The promises in words", Grid(("promise", "methods"), rows, 2))] if rows else []
