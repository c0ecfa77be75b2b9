"""The privacy ledger: epsilon by round, accuracy by the epsilon spent, and what each method promised at its end."""

from collections.abc import Sequence

from fedexp.report import epsilon
from fedexp.report.bands import known
from fedexp.report.html import plot
from fedexp.report.html.panels.learning import by_round
from fedexp.report.html.section import Section, side_by_side
from fedexp.report.html.svg import short, text
from fedexp.report.html.table import table
from fedexp.report.markup import Grid
from fedexp.report.measures import statistic
from fedexp.report.methods import Method

_ENTRIES = ("epsilon_pld", "epsilon_rdp", "delta", "noise_multiplier")
_NOTE = (
    "Epsilon is that of the federation, spent up to a round, from the privacy loss distribution (PLD); the table has "
    "the accountant of Rényi divergences (RDP) beside it."
)


def section(methods: Sequence[Method]) -> Section | None:
    """Of the methods with a finite epsilon."""
    found = [method for method in methods if any(epsilon.protected(run) for run in method.runs)]
    if not found:
        return None
    name = epsilon.label([run for method in found for run in method.runs if epsilon.protected(run)])
    spent = plot.Axes(title="Epsilon by round", horizontal="Round", vertical=name, zero=True)
    gained = plot.Axes(title="Test accuracy by epsilon spent", horizontal=name, vertical="Accuracy", whole=False)
    figures = [
        plot.draw(spent, found, lambda run: by_round(run, epsilon.COLUMN)),
        plot.draw(gained, found, lambda run: known(run.column(epsilon.COLUMN), run.column("test_accuracy"))),
    ]
    return Section("privacy", "Privacy ledger", side_by_side(figures) + _ledger(found) + _promises(found), _NOTE)


def _ledger(methods: Sequence[Method]) -> str:
    rows = [[method.label, *(_mean(method, entry) for entry in _ENTRIES)] for method in methods]
    kept = [n for n in range(len(rows[0])) if any(row[n] != "-" for row in rows)]
    names = ("method", "epsilon (PLD)", "epsilon (RDP)", "delta", "noise multiplier")
    grid = Grid([names[n] for n in kept], [[row[n] for n in kept] for row in rows])
    return table(grid, "The ledger at the end, mean over finished seeds") if len(kept) > 1 else ""


def _mean(method: Method, entry: str) -> str:
    values = [((run.summary or {}).get("privacy") or {}).get(entry) for run in method.runs]
    mean = statistic(values).mean
    return "-" if mean is None else short(mean)


def _promises(methods: Sequence[Method]) -> str:
    """What the runs say of themselves in words, the same words once."""
    told: dict[str, list[str]] = {}
    for method in methods:
        for run in method.runs:
            promise = ((run.summary or {}).get("privacy") or {}).get("promise")
            if promise and method.label not in told.setdefault(str(promise), []):
                told[str(promise)].append(method.label)
    items = "".join(f"<li><b>{text('; '.join(own))}</b>: {text(promise)}</li>" for promise, own in told.items())
    return (
        f'<details class="promises"><summary>The promises in words</summary><ul>{items}</ul></details>' if told else ""
    )
