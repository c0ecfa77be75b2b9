"""`fedexp report DIR... [--grid ROWS,COLUMNS] [--out FILE] [--wide]`: words read, work left to `fedexp.report`."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fedexp.core.errors import ConfigError
from fedexp.core.files import shown
from fedexp.core.terminal import width
from fedexp.run.folders import OUTPUTS, is_run

if TYPE_CHECKING:
    from fedexp.report.markup import Grid
    from fedexp.report.runs import Run

NAME = "report.html"
_ENDINGS = (".html", ".md")


@dataclass
class ReportRequest:
    """What the words ask for: folders of runs, the page to write, and the settings to lay the runs out by."""

    folders: list[Path] = field(default_factory=list)
    page: Path = OUTPUTS / NAME
    by: tuple[str, str] | None = None
    wide: bool = False


def act(words: list[str]) -> int:
    """Writes the report and prints its tables and its place."""
    asked = read(words)
    page = asked.page
    from fedexp.report import runs

    found, empty = runs.collect(asked.folders)
    try:
        made = _page_of(page, found, empty) if asked.by is None else _grid_page(page, found, asked.by)
    except OSError as error:
        raise ConfigError(f"cannot write the report {shown(page)}: {error.strerror}; give another --out") from error
    for title, grid in made:
        sys.stdout.write(f"{title}\n\n{grid.fitted(width(asked.wide), '--wide shows them')}\n")
    sys.stdout.write(f"page  {shown(page)}\n")
    return 0


def _page_of(page: Path, found: "list[Run]", empty: list[Path]) -> "list[tuple[str, Grid]]":
    from fedexp.report import methods
    from fedexp.report import page as paper
    from fedexp.report.html import page as screen

    write = screen.write if page.suffix == ".html" else paper.write
    return [(table.title, table.grid()) for table in write(page, methods.group(found), empty)]


def _grid_page(page: Path, found: "list[Run]", by: tuple[str, str]) -> "list[tuple[str, Grid]]":
    from fedexp.report import grid_page, methods
    from fedexp.report.html import page as screen

    write = screen.write_grid if page.suffix == ".html" else grid_page.write
    counted = [run for method in methods.group(found) for run in method.runs]  # a repeated seed once
    return write(page, counted, by)


def read(words: list[str]) -> ReportRequest:
    """Sorts the words."""
    asked, out = ReportRequest(), None
    left = iter(words)
    for word in left:
        key, equal, value = word.partition("=")
        if key == "--out":
            out = value if equal else next(left, "")
        elif key == "--grid":
            asked.by = _axes(value if equal else next(left, ""))
        elif word == "--wide":
            asked.wide = True
        elif word.startswith("-"):
            raise ConfigError(f"unknown flag {word}; report knows --grid ROWS,COLUMNS, --out FILE and --wide")
        else:
            asked.folders.append(Path(word))
    if not asked.folders:
        raise ConfigError("report needs folders of runs; e.g. fedexp report outputs/latest")
    asked.page = _page(asked.folders, out)
    return asked


def _axes(text: str) -> tuple[str, str]:
    rows, comma, columns = text.partition(",")
    if not (rows and comma and columns) or "," in columns or rows == columns:
        raise ConfigError(
            f"--grid must be two settings, e.g. --grid aggregator,attack or --grid aggregator,local.lr; got {text!r}"
        )
    return rows, columns


def _page(directories: list[Path], out: str | None) -> Path:
    if out is None:
        return directories[0] / NAME if len(directories) == 1 else OUTPUTS / NAME
    page = Path(out)
    if page.suffix not in _ENDINGS:
        raise ConfigError(f"--out must name a file that ends in .html or .md, got {out or 'none'}; e.g. --out {NAME}")
    if page.is_dir():
        raise ConfigError(f"--out must name a file, but {out} is a folder; e.g. --out {page / NAME}")
    if page.suffix == ".md" and is_run(page.with_suffix("")):
        raise ConfigError(f"--out {out} would put its pictures into the run folder {page.with_suffix('')}; rename it")
    return page
