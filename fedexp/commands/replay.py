"""Run published tables again and judge every cell.

Without a name: the tables that there are, how far each is, and what the rest would take. With one, or with a file of
your own (.yml): runs what is missing of it, the cheapest cells first, and writes the page with the published numbers
beside ours: README.md and results.csv in DIR/NAME. A replay that was cut off goes on where it stopped. --seeds 0 runs
nothing and makes the page again. Words choose a launcher as in sweeps: hydra/launcher=joblib hydra.launcher.jobs=2.

A table is code: the words of its cells may name any function of any module. Run no table that you would not run as a
script.
"""

from argparse import Namespace
from pathlib import Path
from typing import Any

from fedexp.commands.arguments.json_document import add_json_flag, json_document
from fedexp.commands.arguments.parsing import (
    InvalidArgument,
    Parser,
    complete_folder,
    folder_path,
    integer_at_least,
    nonempty_text,
)
from fedexp.config.location import conf_dir
from fedexp.core.errors import ConfigError
from fedexp.files.atomic import display_path, write_atomically
from fedexp.process.exits import FAILURE, interruptible, print_error
from fedexp.process.terminal import print_text, width
from fedexp.replay import catalog
from fedexp.run.folders import OUTPUTS


def build_parser() -> Parser:
    """Declares a table, and how much of it to run."""
    parser = Parser("replay [NAME] [--cells PATTERN] [--seeds N] [--budget HOURS]", __doc__)
    parser.words("words", lambda arguments, _: [] if arguments.words else catalog.names())
    parser.add_flag(
        "only cells called so; * stands for anything", "--cells", type=nonempty_text, default="*", metavar="PATTERN"
    )
    parser.add_flag(
        "how many seeds of each cell (those of the table)", "--seeds", type=integer_at_least(0), metavar="N"
    )
    parser.add_flag("begin no run that would end later than this", "--budget", type=_hours, metavar="HOURS")
    help_text = "where results are kept (outputs/replay)"
    add_json_flag(parser)
    parser.add_flag(
        help_text, "--into", type=folder_path, values=complete_folder, default=OUTPUTS / "replay", metavar="DIR"
    )
    return parser


def act(words: list[str]) -> int:
    """Lists the tables, or runs one and writes its page."""
    arguments = build_parser().read(words)
    named = [word for word in arguments.words if "=" not in word]
    if len(named) > 1:
        raise ConfigError(f"replay takes one table at a time, got {', '.join(named)}")
    launcher = [word for word in arguments.words if "=" in word]
    if odd := [word for word in launcher if not word.startswith(("hydra/launcher=", "hydra.launcher."))]:
        raise ConfigError(f"a replay runs its tables as they are, but for hydra/launcher; got {odd[0]}")
    with json_document(arguments.json) as content:
        if named:
            return _replay(arguments, named[0], launcher, content)
        print_text(_list_tables(arguments.into, content))
    return 0


def _replay(arguments: Namespace, name: str, launcher: list[str], content: dict[str, Any]) -> int:
    """Runs what is missing of a table and writes its page; fills `content` with the cells."""
    from fedexp.replay import page, replay, results, table

    chosen = table.load(name)
    table_folder = arguments.into / chosen.name
    jobs = replay.missing_runs(chosen, table_folder, arguments.cells, arguments.seeds)
    budget = {} if arguments.budget is None else {"budget_s": 3600 * arguments.budget}
    with interruptible("the same command goes on where it stopped"):
        failed = replay.Replay(chosen, table_folder, jobs, launcher, **budget).execute() if jobs else []
    lines = page.judge_cells(chosen, results.read(table_folder))
    for name, text in page.documents(chosen, lines, display_path(arguments.into)).items():
        write_atomically(table_folder / name, text.encode())
    print_text(
        page.grid(lines).fit_width(width(), f"see {display_path(table_folder / page.PAGE)}", page.Grid.aligned_text)
    )
    print_text(f"{page.describe_counts(lines)}\npage  {display_path(table_folder / page.PAGE)}\n")
    cells = page.grid(lines)
    content |= {"table": chosen.name, "page": table_folder / page.PAGE, "failed": [str(failure) for failure in failed]}
    content["cells"] = [
        {**dict(zip(cells.headings, row, strict=True)), "values": [result.value for result in line.results]}
        for row, line in zip(cells.rows, lines, strict=True)
    ]
    for failure in failed:
        print_error(str(failure))
    return FAILURE if failed else 0


def _list_tables(into: Path, content: dict[str, Any]) -> str:
    """The tables with their verdicts so far."""
    from fedexp.replay import overview
    from fedexp.report.draw.markdown import Grid

    tables = overview.read_progress(into)
    grid = overview.progress_grid(tables)
    content["tables"] = [dict(zip(grid.headings, row, strict=True)) for row in grid.rows]
    text = grid.fit_width(width(), "see the pages", Grid.aligned_text) if tables else "no tables\n"
    return text if any(line.done for line in tables) else f"{text}\n{_where_results_are(into)}\n"


def _where_results_are(into: Path) -> str:
    """Where the results are that were published with the program, as none is in the folder that was looked into."""
    folder = conf_dir().parent / "scripts" / "replays"
    where = display_path(folder) if folder.is_dir() else "scripts/replays of the repository"
    return (
        f"These count the runs in {display_path(into)}, where there is none. Ours lie in {where}, as its README.md "
        "tells: --into DIR counts them."
    )


def _hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = -1.0
    if not hours >= 0:
        raise InvalidArgument(f"must be a number of hours >= 0, got {text or 'none'}")
    return hours
