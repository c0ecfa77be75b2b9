"""How many examples sites have: those that are scored, those that they train on, and of two classes the second."""

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
    scored = list(run_tables.read_lines(run.folder / "client_scores.csv", ("client", "name", "examples")))
    trained = list(run_tables.read_lines(run.folder / "federation.csv", ("client", "name", "examples")))
    classes = [name for name in trained[0] if name not in _FIXED] if trained else []
    columns = {"trained on": "examples", **({f"of them {classes[1]}": classes[1]} if len(classes) == 2 else {})}
    return {
        "scored on": {line["name"]: int(line["examples"]) for line in scored},
        **{
            heading: {line["name"]: int(line[column]) for line in trained if run_tables.is_integer(line[column])}
            for heading, column in columns.items()
        },
    }


def _range_text(numbers: set[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
