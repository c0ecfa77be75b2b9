"""The page of a table, from the table and its results alone: published numbers beside ours."""

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fedexp.replay import catalog, results
from fedexp.replay.results import Result
from fedexp.replay.table import Cell, PublishedTable
from fedexp.replay.verdict import Published, Verdict, judge
from fedexp.report.draw.markdown import Grid, escape_markdown

OUTCOMES = ("inside", "outside", "disputed", "not resolved", "no number", "not run")


@dataclass(frozen=True)
class JudgedCell:
    """A cell, its results and the verdict on them."""

    cell: Cell
    results: Sequence[Result]
    verdict: Verdict


def judge_cells(table: PublishedTable, all_results: Sequence[Result]) -> list[JudgedCell]:
    """Judges every cell by its results."""
    lines = []
    for cell in table.cells:
        cell_results = results.results_of_cell(all_results, cell)
        lines.append(
            JudgedCell(cell, cell_results, judge(cell.published, results.our_values(cell_results), cell.replications))
        )
    return lines


def count_outcomes(lines: Sequence[JudgedCell]) -> dict[str, int]:
    """How many cells have each outcome."""
    counter = Counter(line.verdict.outcome for line in lines)
    return {outcome: counter[outcome] for outcome in OUTCOMES}


def describe_counts(lines: Sequence[JudgedCell]) -> str:
    """How many cells there are, and how many have each outcome, in words."""
    counts_text = ", ".join(f"{count} {outcome}" for outcome, count in count_outcomes(lines).items() if count)
    return f"{len(lines)} cell{'s' * (len(lines) != 1)}: {counts_text}"


def grid(lines: Sequence[JudgedCell]) -> Grid:
    """A row for each cell."""
    head = ["cell", "published", "run again by others", "ours (95 %)", "seeds", "verdict", "minutes a run"]
    return Grid(head, [_row(line) for line in lines])


def markdown(table: PublishedTable, lines: Sequence[JudgedCell], into: str) -> str:
    """The complete page, which is written to `into`/NAME."""
    makers = sorted(
        {
            f"{result.made_by} ({result.commit})" if result.commit else result.made_by
            for judged_cell in lines
            for result in judged_cell.results
        }
    )
    parts = [
        f"# {table.about}",
        f"Source: {table.source}",
        f"{describe_counts(lines)}.",
        grid(lines).markdown().rstrip(),
        *([f"What differs from the source: {table.differs}"] if table.differs else []),
        *_notes(lines),
        "The rule of the verdicts is that of `fedexp/replay/verdict.py`. A run that did not get there in its rounds "
        "counts as one that would have in the round after, and its cell is never inside.",
        "## Commands",
        "\n".join(f"* {line.cell.name}: `{command(line.cell)}`" for line in lines),
        f"Results: `{results.NAME}` beside this page, one line a run with the digest of its last models"
        f"{'; made by ' + escape_markdown('; '.join(makers)) if makers else ''}.",
        _rerun_note(table, into),
    ]
    return "\n\n".join(parts) + "\n"


def _rerun_note(table: PublishedTable, into: str) -> str:
    """The commands that make the page and its lines again; a table of the user's own is named by its file."""
    is_user_table = table.name not in catalog.names()
    name = f"{table.name}{catalog.ENDING}" if is_user_table else table.name
    page = shlex.join(["fedexp", "replay", name, "--seeds", "0", "--into", into])
    lines = shlex.join(
        ["fedexp", "verify", f"{into}/{table.name}/{results.NAME}", *(["--table", name] if is_user_table else [])]
    )
    table_file = f" and `{name}`" * is_user_table
    return (
        f"`{page}` makes this page again, and `{lines}` runs lines of it again, both typed in the folder that holds "
        f"`{into}`{table_file}."
    )


def command(cell: Cell) -> str:
    """The command that runs a cell's seeds."""
    seeds = "seed=" + ",".join(str(seed) for seed in range(cell.seeds))
    return f"fedexp run -m {shlex.join([*cell.overrides, seeds])}"


def _row(line: JudgedCell) -> list[str]:
    cell, verdict = line.cell, line.verdict
    replications = "; ".join(f"{author} {format_published(replication)}" for author, replication in cell.replications)
    agrees = f" (ours agree with {', '.join(verdict.agrees) or 'nobody'})" if verdict.outcome == "disputed" else ""
    missed = sum(result.value is None for result in line.results)
    seeds = f"{len(line.results)}" + (f", {missed} did not get there" if missed else "")
    return [
        cell.name,
        format_published(cell.published) if cell.published else "-",
        replications or "-",
        format_mean(verdict, missed),
        seeds,
        verdict.outcome + agrees,
        _format_minutes(line),
    ]


def format_published(published: Published) -> str:
    """A published number, and how far another run may be from it."""
    value = f"{published.value:g}"
    if published.beyond:
        return f"> {value}"
    if published.spread is not None:
        return f"{value} ± {published.spread:g} ({published.runs} runs)"
    return f"{value} (within {f'a factor {published.factor:g}' if published.factor else f'{published.within:g}'})"


def format_mean(verdict: Verdict, missed: int) -> str:
    """Our mean and its interval; a bound where some run did not get there."""
    if verdict.mean is None:
        return "-"
    mean = f"{'>= ' * bool(missed)}{verdict.mean:.4g}"
    return mean if verdict.low is None else f"{mean} ({verdict.low:.4g} to {verdict.high:.4g})"


def minutes_per_run(line: JudgedCell) -> float | None:
    """Minutes of one run: measured, or else the table's estimate."""
    if line.results:
        return sum(result.seconds for result in line.results) / len(line.results) / 60
    return line.cell.minutes


def _format_minutes(line: JudgedCell) -> str:
    estimate = minutes_per_run(line)
    return "-" if estimate is None else f"{'' if line.results else 'about '}{estimate:.2g}"


def _notes(lines: Sequence[JudgedCell]) -> list[str]:
    notes = [f"* {line.cell.name}: {line.cell.note}" for line in lines if line.cell.note]
    return ["\n".join(["Notes:", "", *notes])] if notes else []
