"""Compare runs: tables and drawings on a page.

DIR is a run folder, a sweep, or a folder with runs further below. Runs that differ in the seed only are one method.
FILE ends in .html (default: report.html in the one DIR, else outputs/report.html): one page for the browser, which
needs nothing else. Or it ends in .md: the folder named like it then holds the pictures, and the tables as CSV, Markdown
and LaTeX. Or it ends in .tex: the tables alone (booktabs).
"""

from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedexp.commands.arguments import candidates
from fedexp.commands.arguments.json_document import add_json_flag, json_document
from fedexp.commands.arguments.parsing import InvalidArgument, Parser, complete_folder
from fedexp.core.errors import ConfigError
from fedexp.files.atomic import display_path, shell_path
from fedexp.files.unwritable import explain_unwritable
from fedexp.process.terminal import print_text, width
from fedexp.run.folders import OUTPUTS, is_run, is_sweep

if TYPE_CHECKING:
    from fedexp.report.draw.markdown import Grid
    from fedexp.report.read.methods import Method

NAME = "report.html"


def build_parser() -> Parser:
    """Declares folders of runs, the page to write, and the settings of a grid."""
    parser = Parser("report DIR... [--grid ROWS,COLUMNS | --columns NAMES] [--out FILE] [--wide]", __doc__)
    parser.words("folders", lambda _, word: candidates.complete_run_folder(word))
    help_text = "lay final accuracies out by two settings instead, as heat maps with the worst case of each row"
    help_text += "; method is all that differs besides"
    parser.add_flag(
        f"{help_text}; e.g. aggregator,attack or method,attack", "--grid", type=_axes, metavar="ROWS,COLUMNS"
    )
    help_text = "the columns of the tables, by their names; e.g. 'final accuracy,RoA@0.8'"
    parser.add_flag(help_text, "--columns", type=_columns, metavar="NAMES")
    parser.add_flag("accuracies and other shares in percent", "--percent", action="store_true")
    help_text = "behind ± half of Student's 95 %% interval of the mean, instead of the standard deviation"
    parser.add_flag(help_text, "--interval", action="store_true")
    parser.add_flag(
        "the page: FILE.html, FILE.md or FILE.tex", "--out", type=_page, values=complete_folder, metavar="FILE"
    )
    parser.add_flag("print columns that do not fit the terminal, too", "--wide", action="store_true")
    add_json_flag(parser)
    return parser


def act(words: list[str]) -> int:
    """Writes the report, and prints its tables and its path."""
    arguments = build_parser().read(words)
    if not arguments.folders:
        raise ConfigError("report needs folders of runs; e.g. fedexp report outputs/latest")
    if arguments.grid and arguments.columns:
        raise ConfigError("--columns is for the tables of methods, which --grid replaces; leave one out")
    directories = list(map(Path, arguments.folders))
    page = arguments.out or (directories[0] if len(directories) == 1 else OUTPUTS) / NAME
    grouped, notes, caveats = _collect(directories, arguments.grid)
    with explain_unwritable(page, "--out"):
        titled_grids, documents, lacking = _write_report(page, grouped, caveats, arguments)
    from fedexp.report.topics.chosen_columns import describe_lack

    notes += map(describe_lack, lacking)
    with json_document(arguments.json) as content:
        if arguments.json:
            content |= {"page": page, "tables": documents, "notes": notes}
        for title, table in titled_grids:
            print_text(f"{title}\n\n{table.fit_width(width(arguments.wide), '--wide shows them')}\n")
        lines = [f"note  {' '.join(note.split())}" for note in notes]
        print_text("".join(f"{line}\n" for line in (*lines, f"page  {display_path(page)}")))
    return 0


def _collect(directories: list[Path], grid: tuple[str, str] | None) -> "tuple[list[Method], list[str], list[str]]":
    """The methods below the directories, what is to be said of them on the terminal, and on the page."""
    from fedexp.report.read import methods, runs
    from fedexp.report.topics import provenance
    from fedexp.report.topics.grid import notes as grid_notes
    from fedexp.report.topics.grid import panel
    from fedexp.report.topics.unequal import unequal_conditions

    collected_runs, roundless = runs.collect_runs(directories)
    grouped = methods.group_runs(collected_runs)
    folders = [run.folder for run in (*collected_runs, *roundless)]
    notes = [*unequal_conditions(grouped), *_unfinished_sweeps(folders, directories)]
    notes += provenance.lost_runs(methods.labels_beside(collected_runs, roundless))
    if grid is None:
        return grouped, notes, [*notes, *provenance.caveats(grouped)]
    grouped = methods.group_runs(panel.name_methods([*collected_runs, *roundless], grid))
    notes += grid_notes.caveats([run for method in grouped for run in method.every_run], grid)
    return grouped, notes, notes


def _write_report(
    page: Path, grouped: "list[Method]", caveats: list[str], arguments: Namespace
) -> "tuple[list[tuple[str, Grid]], list[dict[str, Any]], Sequence[str]]":
    """Writes the page; returns its tables for people, and for programs with means, deviations and counts.

    And the columns that were asked for, but of which no run has a number.
    """
    from fedexp.report.html import page as html_page
    from fedexp.report.pages import latex_page, markdown_page
    from fedexp.report.topics.tables import View

    writer = {".html": html_page, ".md": markdown_page, ".tex": latex_page}[page.suffix]
    view = View(columns=arguments.columns, percent=arguments.percent, interval=arguments.interval)
    if arguments.grid is None:
        result_tables = writer.write(page, grouped, caveats, view)
        documents = [{"title": table.title, "rows": table.frame().to_dict("records")} for table in result_tables]
        grids = [grid for table in result_tables for grid in table.grids()]
        return grids, documents, result_tables[0].view.lacking
    grids = writer.write_grid(page, grouped, arguments.grid, caveats, view)
    documents = [
        {"title": title, "rows": [dict(zip(grid.headings, row, strict=True)) for row in grid.rows]}
        for title, grid in grids
    ]
    return grids, documents, ()


def _unfinished_sweeps(folders: Iterable[Path], directories: Sequence[Path]) -> Iterator[str]:
    """A sentence for each interrupted sweep in these directories: its last points may have no folder yet."""
    from fedexp.report.topics import sweep_table

    parents = dict.fromkeys(parent for folder in folders for parent in folder.parents[:2])
    for sweep in filter(is_sweep, parents):
        if (
            any(sweep.resolve().is_relative_to(directory.resolve()) for directory in directories)
            and not (sweep / sweep_table.NAME).is_file()
        ):
            yield (
                f"The sweep {display_path(sweep)} did not end, and points that it did not begin are missing here; go "
                f"on with: fedexp resume {shell_path(sweep)}"
            )


def _axes(text: str) -> tuple[str, str]:
    rows, comma, columns = text.partition(",")
    if not (rows and comma and columns) or "," in columns or rows == columns:
        raise InvalidArgument(
            f"must be two settings, e.g. --grid aggregator,attack or --grid aggregator,local.lr; got {text!r}"
        )
    return rows, columns


def _columns(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise InvalidArgument(f"must be names with commas between them, got {text!r}; e.g. --columns 'final accuracy'")
    return names


def _page(text: str) -> Path:
    page = Path(text)
    if page.suffix not in (".html", ".md", ".tex"):
        raise InvalidArgument(
            f"must name a file that ends in .html, .md or .tex, got {text or 'none'}; e.g. --out {NAME}"
        )
    if page.is_dir():
        raise InvalidArgument(f"must name a file, but {text} is a folder; e.g. --out {page / NAME}")
    if page.suffix == ".md" and is_run(page.with_suffix("")):
        raise InvalidArgument(f"{text} would put its pictures into the run folder {page.with_suffix('')}; rename it")
    return page
