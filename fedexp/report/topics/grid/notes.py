"""What is said of a grid in words: what is laid out, what its numbers are, and what it lacks."""

from collections.abc import Iterator, Sequence

from fedexp.report.read import sweeps
from fedexp.report.read.runs import Run
from fedexp.report.topics.grid.panel import Panel, axis_values, different_settings, panels, setting_text, title_of


def explain(runs: Sequence[Run], panel: Panel) -> str:
    """What the numbers of a grid are, of which this is a panel."""
    return (
        f"Final test {panel.measure} of {sum(run.is_finished for run in runs)} runs; a cell is the mean ± "
        f"{panel.view.spread}, worst the least good mean of its row. Bold: the best of its column. (k/n): only k of n "
        "seeds are finished; such a cell is neither bold nor counted in worst."
    )


def caveats(runs: Sequence[Run], by: tuple[str, str]) -> list[str]:
    """What is left out of it, which cells are not complete, and which rows and columns are empty."""
    shown = panels(runs, by)
    unfinished = sum(not run.is_finished and run.has_rounds for run in runs)
    notes = [f"{unfinished} unfinished run(s) are left out."] if unfinished else []
    cells, partial = sum(panel.values.size for panel in shown), sum(int((~panel.complete).sum()) for panel in shown)
    if partial:
        notes.append(
            f"{partial} of {cells} cells are not complete: they are not in bold, and their rows have no worst case."
        )
    notes += _empty_lines(runs, by, shown)
    names, drawn = different_settings(runs, by), {panel.title for panel in shown}
    titles = dict.fromkeys(title_of(run, names) for run in runs)
    return [*notes, *(f"No run with {title} is finished." for title in titles if title not in drawn)]


def _empty_lines(runs: Sequence[Run], by: tuple[str, str], shown: Sequence[Panel]) -> Iterator[str]:
    """Sentences on the values that no finished run has, in any panel or in one."""
    planned = sweeps.planned_values([run.folder for run in runs])
    for axis, name in enumerate(by):
        filled = [_names_with_runs(panel, axis) for panel in shown]
        nowhere = [value for value in axis_values(runs, name, planned) if not any(value in values for values in filled)]
        if nowhere:
            yield f"No run with {name}={', '.join(nowhere)} is finished."
        for panel, values in zip(shown, filled, strict=True):
            lines = panel.columns if axis else panel.rows
            if empty := [value for value in lines if value not in values and value not in nowhere]:
                yield f"No run with {name}={', '.join(empty)} is finished where {panel.title}."


def _names_with_runs(panel: Panel, axis: int) -> set[str]:
    """The rows (`axis` 0) or columns (1) of a panel that have a finished run."""
    counts = panel.counts.sum(axis=1 - axis).tolist()
    return {value for value, count in zip(panel.columns if axis else panel.rows, counts, strict=True) if count}


def facts(runs: Sequence[Run], by: tuple[str, str]) -> list[tuple[str, str]]:
    """What is laid out, as (term, description)."""
    shown = panels(runs, by)
    rows = dict.fromkeys(name for panel in shown for name in panel.rows)
    columns = dict.fromkeys(name for panel in shown for name in panel.columns)
    split_by = {name: dict.fromkeys(setting_text(run, name) for run in runs) for name in different_settings(runs, by)}
    terms = [
        ("Rows", by[0], rows),
        ("Columns", by[1], columns),
        *(("A table each", *item) for item in split_by.items()),
    ]
    seeds = sorted({run.seed for run in runs if run.seed is not None})
    described = [(term, f"{name}: {', '.join(values)}") for term, name, values in terms]
    return [*described, *([("Seeds", ", ".join(map(str, seeds)))] if seeds else [])]
