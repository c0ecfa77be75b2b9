"""How many examples sites have: those that are scored, of two classes those of the second among them, and training."""

from collections.abc import Mapping, Sequence

from fedexp.files import run_tables
from fedexp.report.read.runs import Run

_FIXED = ("client", "name", "examples")  # columns of federation.csv that are no classes


def site_counts(runs: Sequence[Run]) -> dict[str, dict[str, str]]:
    """For each heading the text of each site, by name; a range where it is not the same in all runs."""
    counts: dict[str, dict[str, set[int]]] = {}
    for run in runs:
        for heading, by_site in _counts(run).items():
            for site, count in by_site.items():
                counts.setdefault(heading, {}).setdefault(site, set()).add(count)
    return {
        heading: {site: _range_text(numbers) for site, numbers in by_site.items()}
        for heading, by_site in counts.items()
    }


def _counts(run: Run) -> Mapping[str, Mapping[str, int]]:
    scored, trained = (
        list(run_tables.read_lines(run.folder / name, ("client", "name", "examples")))
        for name in ("client_scores.csv", "federation.csv")
    )
    classes = [name for name in trained[0] if name not in _FIXED] if trained else []
    counts = {"scored on": _by_site(scored, "examples")}
    if len(classes) == 2 and (positives := _by_site(scored, "positives")):
        counts[f"of them {classes[1]}"] = positives
    return {**counts, "trained on": _by_site(trained, "examples")}


def _by_site(lines: Sequence[Mapping[str, str]], column: str) -> dict[str, int]:
    return {line["name"]: int(line[column]) for line in lines if run_tables.is_integer(line.get(column, ""))}


def _range_text(numbers: set[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
