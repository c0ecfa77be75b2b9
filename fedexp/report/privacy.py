"""The privacy ledger of a report: epsilon and accuracy, and what each method promised at its end."""

from collections.abc import Sequence

from fedexp.report import bands, epsilon, privacy_curves
from fedexp.report.markup import Grid
from fedexp.report.measures import statistic
from fedexp.report.methods import Method
from fedexp.report.section import Section, section

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


def panel(methods: Sequence[Method]) -> Section | None:
    """Of the methods with a finite epsilon, beside those without one."""
    found = [method for method in methods if any(epsilon.protected(run) for run in method.runs)]
    if not found:
        return None
    name = epsilon.label([run for method in found for run in method.runs if epsilon.protected(run)])
    lines = bands.Lines(name="epsilon_spent", title="Epsilon by round", vertical=name, zero=True)
    spent = bands.picture(lines, found, bands.by_round(epsilon.COLUMN))
    pictures = [spent, *privacy_curves.pictures(methods)]
    return section("privacy", "Privacy ledger", f"{_NOTE} {bands.NOTE}", pictures, [*_ledger(found), *_promises(found)])


def _ledger(methods: Sequence[Method]) -> list[tuple[str, Grid]]:
    columns = {name: [_mean(method, entry) for method in methods] for entry, name in _ENTRIES.items()}
    kept = {name: column for name, column in columns.items() if any(cell != "-" for cell in column)}
    rows = list(zip([method.label for method in methods], *kept.values(), strict=True))
    return [("The ledger at the end, mean over finished seeds", Grid(("method", *kept), rows))] if kept else []


def _mean(method: Method, entry: str) -> str:
    mean = statistic([((run.summary or {}).get("privacy") or {}).get(entry) for run in method.runs]).mean
    return "-" if mean is None else f"{mean:.4g}"


def _promises(methods: Sequence[Method]) -> list[tuple[str, Grid]]:
    """What the runs say of themselves in words, the same words once."""
    told: dict[str, dict[str, None]] = {}
    for method in methods:
        for run in method.runs:
            if promise := ((run.summary or {}).get("privacy") or {}).get("promise"):
                told.setdefault(str(promise), {})[method.label] = None
    rows = [(promise, "; ".join(own)) for promise, own in told.items()]
    return [("The promises in words", Grid(("promise", "methods"), rows, 2))] if rows else []
