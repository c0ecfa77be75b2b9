"""The page of a table, from the table and its results alone: published numbers beside ours."""

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fedexp.replay import results, shelf
from fedexp.replay.results import Result
from fedexp.replay.table import Cell, PublishedTable
from fedexp.replay.verdict import Published, Verdict, judge
from fedexp.report.markup import Grid, escaped

WORDS = ("inside", "outside", "disputed", "not resolved", "no number", "not run")


@dataclass(frozen=True)
class Judged:
    """A cell, its results and the verdict on them."""

    cell: Cell
    found: Sequence[Result]
    verdict: Verdict


def judged(table: PublishedTable, held: Sequence[Result]) -> list[Judged]:
    """Judges every cell by its results."""
    lines = []
    for cell in table.cells:
        own = results.of_cell(held, cell)
        lines.append(Judged(cell, own, judge(cell.published, results.ours(own), cell.others)))
    return lines


def counts(lines: Sequence[Judged]) -> dict[str, int]:
    """How many cells have each outcome."""
    found = Counter(line.verdict.word for line in lines)
    return {word: found[word] for word in WORDS}


def summary(lines: Sequence[Judged]) -> str:
    """How many cells there are, and how many have each outcome, in words."""
    told = ", ".join(f"{count} {word}" for word, count in counts(lines).items() if count)
    return f"{len(lines)} cell{'s' * (len(lines) != 1)}: {told}"


def grid(lines: Sequence[Judged]) -> Grid:
    """A row for each cell."""
    head = ["cell", "published", "run again by others", "ours (95 %)", "seeds", "verdict", "minutes a run"]
    return Grid(head, [_row(line) for line in lines])


def markdown(table: PublishedTable, lines: Sequence[Judged], into: str) -> str:
    """The complete page, which is written to `into`/NAME."""
    makers = sorted(
        {f"{one.made_by} ({one.commit})" if one.commit else one.made_by for own in lines for one in own.found}
    )
    parts = [
        f"# {table.about}",
        f"Source: {table.source}",
        f"{summary(lines)}.",
        grid(lines).markdown().rstrip(),
        *([f"What differs from the source: {table.differs}"] if table.differs else []),
        *_notes(lines),
        "The rule of the verdicts is that of `fedexp/replay/verdict.py`. A run that did not get there in its rounds "
        "counts as one that would have in the round after, and its cell is never inside.",
        "## Commands",
        "\n".join(f"* {line.cell.name}: `{command(line.cell)}`" for line in lines),
        f"Results: `{results.NAME}` beside this page, one line a run with the digest of its last models"
        f"{'; made by ' + escaped('; '.join(makers)) if makers else ''}.",
        _again(table, into),
    ]
    return "\n\n".join(parts) + "\n"


def _again(table: PublishedTable, into: str) -> str:
    """The commands that make the page and its lines again; a table of the user's own is named by its file."""
    own = table.name not in shelf.names()
    name = f"{table.name}{shelf.ENDING}" if own else table.name
    page = shlex.join(["fedexp", "replay", name, "--seeds", "0", "--into", into])
    lines = shlex.join(["fedexp", "verify", f"{into}/{table.name}/{results.NAME}", *(["--table", name] if own else [])])
    beside = f" and `{name}`" * own
    return (
        f"`{page}` makes this page again, and `{lines}` runs lines of it again, both typed in the folder that holds "
        f"`{into}`{beside}."
    )


def command(cell: Cell) -> str:
    """The command that runs a cell's seeds."""
    seeds = "seed=" + ",".join(str(seed) for seed in range(cell.seeds))
    return f"fedexp run -m {shlex.join([*cell.overrides, seeds])}"


def _row(line: Judged) -> list[str]:
    cell, verdict = line.cell, line.verdict
    others = "; ".join(f"{by} {told(other)}" for by, other in cell.others)
    agrees = f" (ours agree with {', '.join(verdict.agrees) or 'nobody'})" if verdict.word == "disputed" else ""
    missed = sum(one.value is None for one in line.found)
    seeds = f"{len(line.found)}" + (f", {missed} did not get there" if missed else "")
    return [
        cell.name,
        told(cell.published) if cell.published else "-",
        others or "-",
        ours(verdict, missed),
        seeds,
        verdict.word + agrees,
        _minutes(line),
    ]


def told(published: Published) -> str:
    """A published number, and how far another run may be from it."""
    value = f"{published.value:g}"
    if published.beyond:
        return f"> {value}"
    if published.spread is not None:
        return f"{value} ± {published.spread:g} ({published.runs} runs)"
    return f"{value} (within {f'a factor {published.factor:g}' if published.factor else f'{published.within:g}'})"


def ours(verdict: Verdict, missed: int) -> str:
    """Our mean and its interval; a bound where some run did not get there."""
    if verdict.mean is None:
        return "-"
    mean = f"{'>= ' * bool(missed)}{verdict.mean:.4g}"
    return mean if verdict.low is None else f"{mean} ({verdict.low:.4g} to {verdict.high:.4g})"


def minutes(line: Judged) -> float | None:
    """Minutes of one run: measured, or else the table's estimate."""
    if line.found:
        return sum(one.seconds for one in line.found) / len(line.found) / 60
    return line.cell.minutes


def _minutes(line: Judged) -> str:
    found = minutes(line)
    return "-" if found is None else f"{'' if line.found else 'about '}{found:.2g}"


def _notes(lines: Sequence[Judged]) -> list[str]:
    notes = [f"* {line.cell.name}: {line.cell.note}" for line in lines if line.cell.note]
    return ["\n".join(["Notes:", "", *notes])] if notes else []
