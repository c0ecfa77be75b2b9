"""Compare runs: tables and drawings on a page.

DIR is a run folder, a sweep, or a folder with runs further below. Runs that differ in the seed only are one method.
FILE ends in .html (default: report.html in the one DIR, else outputs/report.html): one page for the browser, which
needs nothing else. Or it ends in .md: the folder named like it then holds the pictures, and the tables as CSV, Markdown
and LaTeX.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fedexp.commands import offered
from fedexp.commands.parsing import Parser, Wrong, below
from fedexp.core.errors import ConfigError
from fedexp.core.files import shown
from fedexp.core.terminal import width
from fedexp.run.folders import OUTPUTS, is_run

if TYPE_CHECKING:
    from fedexp.report.markup import Grid
    from fedexp.report.runs import Run

NAME = "report.html"


def parser() -> Parser:
    """Declares folders of runs, the page to write, and the settings of a grid."""
    made = Parser("report DIR... [--grid ROWS,COLUMNS] [--out FILE] [--wide]", __doc__)
    made.words("folders", lambda _, word: offered.begun(word))
    told = "lay final accuracies out by two settings instead, as heat maps with the worst case of each row"
    made.flag(f"{told}; e.g. aggregator,attack", "--grid", type=_axes, metavar="ROWS,COLUMNS")
    made.flag("the page: FILE.html or FILE.md", "--out", type=_page, values=below, metavar="FILE")
    made.flag("print columns that do not fit the terminal, too", "--wide", action="store_true")
    return made


def act(words: list[str]) -> int:
    """Writes the report, and prints its tables and its path."""
    asked = parser().read(words)
    if not asked.folders:
        raise ConfigError("report needs folders of runs; e.g. fedexp report outputs/latest")
    directories = list(map(Path, asked.folders))
    page = asked.out or (directories[0] if len(directories) == 1 else OUTPUTS) / NAME
    from fedexp.report import runs

    found, empty = runs.collect(directories)
    try:
        made = _made(page, found, empty, asked.grid)
    except OSError as error:
        raise ConfigError(f"cannot write the report {shown(page)}: {error.strerror}; give another --out") from error
    for title, grid in made:
        sys.stdout.write(f"{title}\n\n{grid.fitted(width(asked.wide), '--wide shows them')}\n")
    sys.stdout.write(f"page  {shown(page)}\n")
    return 0


def _made(page: Path, found: "list[Run]", empty: list[Path], by: tuple[str, str] | None) -> "list[tuple[str, Grid]]":
    from fedexp.report import grid_page, methods
    from fedexp.report import page as paper
    from fedexp.report.html import page as screen

    html, grouped = page.suffix == ".html", methods.group(found)
    if by is None:
        return [(table.title, table.grid()) for table in (screen if html else paper).write(page, grouped, empty)]
    counted = [run for method in grouped for run in method.runs]  # a repeated seed once
    return (screen.write_grid if html else grid_page.write)(page, counted, by)


def _axes(text: str) -> tuple[str, str]:
    rows, comma, columns = text.partition(",")
    if not (rows and comma and columns) or "," in columns or rows == columns:
        raise Wrong(f"must be two settings, e.g. --grid aggregator,attack or --grid aggregator,local.lr; got {text!r}")
    return rows, columns


def _page(text: str) -> Path:
    page = Path(text)
    if page.suffix not in (".html", ".md"):
        raise Wrong(f"must name a file that ends in .html or .md, got {text or 'none'}; e.g. --out {NAME}")
    if page.is_dir():
        raise Wrong(f"must name a file, but {text} is a folder; e.g. --out {page / NAME}")
    if page.suffix == ".md" and is_run(page.with_suffix("")):
        raise Wrong(f"{text} would put its pictures into the run folder {page.with_suffix('')}; rename it")
    return page
