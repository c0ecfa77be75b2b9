"""Run published tables again and judge every cell.

Without a name: the tables that there are, how far each is, and what the rest would take. With one, or with a file of
your own (.yml): runs what is missing of it, the cheapest cells first, and writes the page with the published numbers
beside ours: README.md and results.csv in DIR/NAME. A replay that was cut off goes on where it stopped. --seeds 0 runs
nothing and makes the page again. Words choose a launcher as in sweeps: hydra/launcher=joblib hydra.launcher.jobs=2.

A table is code: the words of its cells may name any function of any module. Run no table that you would not run as a
script.
"""

import sys
from pathlib import Path

from fedexp.commands.parsing import Parser, Wrong, below, folder, given, whole
from fedexp.core.errors import ConfigError
from fedexp.core.exits import FAILED, complain, interruptible
from fedexp.core.files import shown, write_atomically
from fedexp.core.terminal import width
from fedexp.replay import shelf
from fedexp.run.folders import OUTPUTS

PAGE = "README.md"


def parser() -> Parser:
    """Declares a table, and how much of it to run."""
    made = Parser("replay [NAME] [--cells PATTERN] [--seeds N] [--budget HOURS]", __doc__)
    made.words("words", lambda asked, _: [] if asked.words else shelf.names())
    made.flag("only cells called so; * stands for anything", "--cells", type=given, default="*", metavar="PATTERN")
    made.flag("how many seeds of each cell (those of the table)", "--seeds", type=whole(0), metavar="N")
    made.flag("begin no run that would end later than this", "--budget", type=_hours, metavar="HOURS")
    told = "where results are kept (outputs/replay)"
    made.flag(told, "--into", type=folder, values=below, default=OUTPUTS / "replay", metavar="DIR")
    return made


def act(words: list[str]) -> int:
    """Lists the tables, or runs one and writes its page."""
    asked = parser().read(words)
    named = [word for word in asked.words if "=" not in word]
    if len(named) > 1:
        raise ConfigError(f"replay takes one table at a time, got {', '.join(named)}")
    launcher = [word for word in asked.words if "=" in word]
    if odd := [word for word in launcher if not word.startswith(("hydra/launcher=", "hydra.launcher."))]:
        raise ConfigError(f"a replay runs its tables as they are, but for hydra/launcher; got {odd[0]}")
    if not named:
        sys.stdout.write(_listed(asked.into))
        return 0
    from fedexp.replay import page, replay, results, table

    chosen = table.load(named[0])
    place = asked.into / chosen.name
    jobs = replay.missing(chosen, place, asked.cells, asked.seeds)
    budget = {} if asked.budget is None else {"budget_s": 3600 * asked.budget}
    with interruptible("the same command goes on where it stopped"):
        failed = replay.Replay(chosen, place, jobs, launcher, **budget).execute() if jobs else []
    lines = page.judged(chosen, results.read(place))
    write_atomically(place / PAGE, page.markdown(chosen, lines, shown(asked.into)).encode())
    sys.stdout.write(page.grid(lines).fitted(width(), f"see {shown(place / PAGE)}", page.Grid.plain))
    sys.stdout.write(f"{page.summary(lines)}\npage  {shown(place / PAGE)}\n")
    for one in failed:
        complain(str(one))
    return FAILED if failed else 0


def _listed(into: Path) -> str:
    """The tables with their verdicts so far."""
    from fedexp.replay import overview
    from fedexp.report.markup import Grid

    held = overview.lines(into)
    return overview.progress(held).fitted(width(), "see the pages", Grid.plain) if held else "no tables\n"


def _hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = -1.0
    if not hours >= 0:
        raise Wrong(f"must be a number of hours >= 0, got {text or 'none'}")
    return hours
