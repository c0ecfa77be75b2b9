"""The page of a grid: a table and a heat map for each panel."""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from fedexp.core.files import write_atomically
from fedexp.report import heat_map
from fedexp.report.grid import panels
from fedexp.report.markup import Grid
from fedexp.report.runs import Run


def write(page: Path, runs: Sequence[Run], by: tuple[str, str]) -> list[tuple[str, Grid]]:
    """Writes the page, its tables and pictures, the page last; returns the titled tables."""
    folder, sections, shown = page.with_suffix(""), [], []
    for number, panel in enumerate(panels(runs, by), start=1):
        grid, name = panel.grid("\\".join(by)), f"grid_{number}"
        title = panel.title or "Final test accuracy"
        for ending, text in (("md", grid.markdown()), ("tex", grid.latex())):
            write_atomically(folder / f"{name}.{ending}", text.encode())
        heat_map.draw(folder / f"{name}.png", panel, by)
        picture = f"![{title}]({quote(f'{folder.name}/{name}.png')})"
        sections.append(f"## {title}\n\n{picture}\n\n{grid.markdown()}")
        shown.append((title, grid))
    unfinished = sum(not run.finished for run in runs)
    left_out = f" {unfinished} unfinished run(s) are left out." if unfinished else ""
    head = (
        f"# {by[0]} by {by[1]}\n\nFinal test accuracy of {len(runs) - unfinished} runs; a cell is the mean over its "
        f"seeds, `worst` the lowest of its row.{left_out}\n"
    )
    write_atomically(page, "\n".join([head, *sections]).encode())
    return shown
