"""The page of a table, from the table and its results alone: published numbers beside ours."""

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fedexp.replay import catalog, results
from fedexp.replay.command_list import describe_commands
from fedexp.replay.published import Published
from fedexp.replay.results import Result
from fedexp.replay.table import Cell, PublishedTable
from fedexp.replay.verdict import Outcome, Verdict, judge, measure_scatter, usual_scatter
from fedexp.report.draw.markdown import Grid, escape_markdown

OUTCOMES: tuple[Outcome, ...] = ("agrees", "disputed", "differs", "not resolved", "so far", "not run")
DECIDED: tuple[Outcome, ...] = ("agrees", "disputed", "differs", "not resolved")
PAGE, COMMANDS, MOST_LETTERS = "README.md", "commands.md", 30_000
RULE = """\
The rule: a published number *agrees* if it lies where 95 of 100 runs like ours would (a mean where 95 of 100 such means
would), and else it *differs*; how runs scatter is taken from ours, the published ones and the other cells of the table.
*Sees* is the difference from which on a number is outside. There is no verdict before all planned seeds are run (*so
far*), and of right numbers about 5 in 100 differ by chance. Where several settings try for one number, the one that
comes out best counts. A run that did not get there in its rounds counts as one that would have in the round after, and
its cell agrees only where the source did not get there either."""


@dataclass(frozen=True)
class JudgedCell:
    """A cell, its results and the verdict on them."""

    cell: Cell
    results: Sequence[Result]
    verdict: Verdict


def judge_cells(table: PublishedTable, all_results: Sequence[Result]) -> list[JudgedCell]:
    """Judges every cell by its planned seeds, and by how the table's other cells of the same quantity scatter."""
    cells = [(cell, results.planned_results(all_results, cell)) for cell in table.cells]
    values = [results.our_values(cell_results, cell) for cell, cell_results in cells]
    usual = {
        text: usual_scatter(
            measure_scatter(cell.published, ours)
            for (cell, _), ours in zip(cells, values, strict=True)
            if cell.measure.text == text and ours.values
        )
        for text in dict.fromkeys(cell.measure.text for cell, _ in cells)
    }
    return [
        JudgedCell(cell, rows, judge(cell.published, ours, cell.replications, usual[cell.measure.text]))
        for (cell, rows), ours in zip(cells, values, strict=True)
    ]


def numbers(lines: Iterable[JudgedCell]) -> list[JudgedCell]:
    """One judged cell for each published number: where several settings try for it, the one with the best outcome."""
    best: dict[str, JudgedCell] = {}
    for line in lines:
        if line.cell.published is not None:
            name = line.cell.published_number
            best[name] = min(best.get(name, line), line, key=lambda cell: OUTCOMES.index(cell.verdict.outcome))
    return list(best.values())


def measurements(lines: Iterable[JudgedCell]) -> list[JudgedCell]:
    """The cells that no published number stands beside."""
    return [line for line in lines if line.cell.published is None]


def count_outcomes(lines: Iterable[JudgedCell]) -> dict[str, int]:
    """How many published numbers have each outcome."""
    counter = Counter(line.verdict.outcome for line in numbers(lines))
    return {outcome: counter[outcome] for outcome in OUTCOMES}


def describe_counts(lines: Sequence[JudgedCell]) -> str:
    """How many published numbers and own measurements there are, and how many have each outcome, in words."""
    published, unpublished = numbers(lines), measurements(lines)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in count_outcomes(lines).items() if count)
    parts = [f"{len(published)} published number{'s' * (len(published) != 1)}: {counts}"] * bool(published)
    measured = sum(bool(line.results) for line in unpublished)
    phrase = f"{len(unpublished)} measurement{'s' * (len(unpublished) != 1)} of our own"
    parts += [f"{phrase}, {measured} with at least one run"] * bool(unpublished)
    return "; ".join(parts)


def grid(lines: Sequence[JudgedCell]) -> Grid:
    """A row for each cell."""
    head = ["cell", "published", "run again by others", "ours (95 %)", "seeds", "sees", "verdict"]
    return Grid(head, [_row(line) for line in lines])


def measurement_grid(lines: Sequence[JudgedCell]) -> Grid:
    """A row for each measurement of our own."""
    rows = [[line.cell.name, format_ours(line), _format_seeds(line)] for line in lines]
    return Grid(["cell", "ours (95 %)", "seeds"], rows)


def documents(table: PublishedTable, lines: Sequence[JudgedCell], into: str) -> dict[str, str]:
    """The page of a table, and its commands apart where it would be long: texts by their files in `into`/NAME."""
    commands = f"## Commands\n\n{_commands(lines)}"
    complete_page = markdown(table, lines, into, commands)
    if len(complete_page) <= MOST_LETTERS:
        return {PAGE: complete_page}
    link = f"The commands of all runs stand in [{COMMANDS}]({COMMANDS})."
    return {PAGE: markdown(table, lines, into, link), COMMANDS: f"# {table.about}\n\n{commands}\n"}


def markdown(table: PublishedTable, lines: Sequence[JudgedCell], into: str, commands: str) -> str:
    """The page, which is written to `into`/NAME, with a part about its commands."""
    published, unpublished = [line for line in lines if line.cell.published is not None], measurements(lines)
    parts = [
        f"# {table.about}",
        f"Source: {table.source}",
        f"{describe_counts(lines)}.",
        *([grid(published).markdown(padded=False).rstrip()] if published else []),
        *([f"What differs from the source: {table.differs}"] if table.differs else []),
        *_notes(lines),
        *([RULE] if published else []),
        *(
            ["## Measurements of our own", measurement_grid(unpublished).markdown(padded=False).rstrip()]
            if unpublished
            else []
        ),
        commands,
        f"Results: `{results.NAME}` beside this page, one line a run with the digest of its last models"
        f"{_makers(lines)}.",
        _rerun_note(table, into),
    ]
    return "\n\n".join(parts) + "\n"


def _makers(lines: Sequence[JudgedCell]) -> str:
    """What the results were computed by, in words; nothing where there is none."""
    makers = sorted({result.made_by for line in lines for result in line.results})
    return f"; made by {escape_markdown('; '.join(makers))}" if makers else ""


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


def _commands(lines: Sequence[JudgedCell]) -> str:
    """A line for each run: its words and the minutes that it takes."""
    by_words: dict[tuple[str, ...], list[JudgedCell]] = {}
    for line in lines:
        by_words.setdefault(line.cell.overrides, []).append(line)
    runs = {words: (run_name(cells), _format_minutes(cells[0])) for words, cells in by_words.items()}
    return describe_commands(runs, sorted({line.cell.seeds for line in lines}))


def run_name(cells: Sequence[JudgedCell]) -> str:
    """The name of a run: that of its cell, or what stands before the numbers that are taken of it."""
    name = cells[0].cell.name
    return name if len(cells) == 1 else name.rpartition(", ")[0]


def _row(line: JudgedCell) -> list[str]:
    cell, verdict = line.cell, line.verdict
    replications = "; ".join(f"{author} {format_published(replication)}" for author, replication in cell.replications)
    agrees = f" (ours agree with {', '.join(verdict.agrees) or 'nobody'})" if verdict.outcome == "disputed" else ""
    explained = f", explained by {cell.explained}" if cell.explained and verdict.outcome == "differs" else ""
    return [
        cell.name,
        format_published(cell.published) if cell.published else "-",
        replications or "-",
        format_ours(line),
        _format_seeds(line),
        _format_power(line),
        verdict.outcome + agrees + explained,
    ]


def _format_seeds(line: JudgedCell) -> str:
    missed = sum(result.value is None for result in line.results)
    count = len(line.results)
    text = f"{count}" if count >= line.cell.seeds else f"{count} of {line.cell.seeds}"
    return text + (f", {missed} did not get there" if missed else "")


def _format_power(line: JudgedCell) -> str:
    """From which difference on the published number would be outside; a factor where rounds are counted."""
    expected = line.verdict.expected
    if expected is None:
        return "-"
    low, high = expected
    return f"x {math.sqrt(high / low):.3g}" if line.cell.measure.is_count else f"{(high - low) / 2:.2g}"


def format_published(published: Published) -> str:
    """A published number with its spread, and its place in the source."""
    value = f"{'> ' * published.beyond}{published.value:g}"
    if published.spread is not None:
        value += f" ± {published.spread:g} ({published.runs} runs)"
    return f"{value} [{published.where}]" if published.where else value


def format_ours(line: JudgedCell, in_short: bool = False) -> str:
    """Our mean and its interval; where that holds what no value can be, the values, or the least and the most.

    These two `in_short`, for a picture.
    """
    verdict, values = line.verdict, [result.value for result in line.results]
    if verdict.mean is None:
        return "not run"
    mean = f"{'>= ' * (None in values)}{verdict.mean:.4g}"
    if verdict.low is None or verdict.high is None:
        return mean
    reached = [value for value in values if value is not None]
    if reached and (verdict.low < 0 <= min(reached) or (verdict.high > 1 >= max(reached) and min(reached) >= 0)):
        if in_short and len(reached) > 1:
            return f"{mean} (runs from {min(reached):.3g} to {max(reached):.3g})"
        return f"{mean}: " + ", ".join("-" if value is None else f"{value:.3g}" for value in values)
    return f"{mean} ({verdict.low:.4g} to {verdict.high:.4g})"


def minutes_per_run(line: JudgedCell) -> float | None:
    """Minutes of one run: measured, or else the table's estimate."""
    if line.results:
        return sum(result.seconds for result in line.results) / len(line.results) / 60
    return line.cell.minutes


def _format_minutes(line: JudgedCell) -> str:
    estimate = minutes_per_run(line)
    return "?" if estimate is None else f"{'' if line.results else 'about '}{float(f'{estimate:.2g}'):,g}"


def _notes(lines: Sequence[JudgedCell]) -> list[str]:
    """The notes, each once with the cells that it is about."""
    cells_by_note: dict[str, list[JudgedCell]] = {}
    for line in lines:
        if line.cell.note:
            cells_by_note.setdefault(line.cell.note, []).append(line)
    notes = [f"* {run_name(cells)}: {note}" for note, cells in cells_by_note.items()]
    return ["\n".join(["Notes:", "", *notes])] if notes else []
