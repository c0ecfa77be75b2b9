"""What the methods differ in, and what every run was made with."""

from collections.abc import Sequence

from fedexp.report import page as paper
from fedexp.report.html.section import Section
from fedexp.report.html.svg import text
from fedexp.report.html.table import table
from fedexp.report.markup import Grid
from fedexp.report.methods import Method

_OPEN = 15  # up to so many runs are shown unasked
_ALIKE = ("versions", "commit", "device")


def differences(methods: Sequence[Method]) -> Section | None:
    """Every group and key of the configs that is not the same everywhere."""
    grid = paper.differences(methods)
    if grid is None:
        return None
    return Section("differences", "Differences", table(upright(grid), "Settings that differ"))


def upright(grid: Grid) -> Grid:
    """A table of more settings than methods has a row a setting."""
    if len(grid.headings) - 1 <= len(grid.rows):
        return grid
    columns = list(zip(grid.headings, *grid.rows, strict=True))
    return Grid(("setting", *columns[0][1:]), columns[1:], len(columns[0]))


def runs(methods: Sequence[Method]) -> Section:
    """Folder, seed, state, versions and commit of each run; what is the same for all is said once."""
    common, grid = parted(paper.runs(methods))
    said = "".join(f"<dt>{text(name)}</dt><dd>{text(value)}</dd>" for name, value in common)
    facts = f"<dl>{said}</dl>" if said else ""
    opened = " open" if len(grid.rows) <= _OPEN else ""
    shown = table(grid, "Runs, versions and commits")
    body = f"<details{opened}><summary>{len(grid.rows)} runs</summary>{shown}</details>"
    return Section("runs", "Runs", facts + body)


def parted(grid: Grid) -> tuple[list[tuple[str, str]], Grid]:
    """What all rows share of versions, commit and device, and the table without it."""
    columns = {name: {row[place] for row in grid.rows} for place, name in enumerate(grid.headings) if name in _ALIKE}
    common = [(name, next(iter(values))) for name, values in columns.items() if len(values) == 1]
    said = {name for name, _ in common}
    kept = [place for place, name in enumerate(grid.headings) if name not in said]
    rows = [[row[place] for place in kept] for row in grid.rows]
    return [(name, value) for name, value in common if value != "-"], Grid(
        [grid.headings[place] for place in kept], rows, len(kept)
    )
