"""The report as one Markdown page beside a folder of its pictures and tables."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

from fedexp.config.override_text import short_text
from fedexp.core.files import shown, write_atomically
from fedexp.maths.metrics import final
from fedexp.report import pictures, tables
from fedexp.report.markup import Grid
from fedexp.report.methods import Method, differing_keys, differing_options, options, settings
from fedexp.report.runs import Run
from fedexp.report.tables import Table

READING = {
    "results": (
        "Mean ± sample standard deviation over the seeds. RoA@x is the first round with a test accuracy of at least x, "
        "ToA@x the cumulative seconds until then, AUC the trapezoid rule over rounds; (k/n) says that only k of the n "
        "runs have the number, and the mean is over those. Selections are summed over the rounds. Epsilon, if any, is "
        "the federation's at the end."
    ),
    "simulated": "By the cumulative seconds of the simulated clock; otherwise as above.",
}

_PARTLY = "which makes its AUC, selections and rounds smaller and its accuracies earlier than those of a finished run"


def write(page: Path, methods: Sequence[Method], empty: Sequence[Path]) -> list[Table]:
    """Writes the page and its folder, the page last, and returns the tables; `empty` are the folders left out."""
    folder = page.with_suffix("")
    made = tables.both(methods)
    for table in made:
        _write_table(folder, table)
    drawn, differing = pictures.draw(folder, methods), differences(methods)
    sections = [
        f"# Report\n\n{scope(methods)}\n",
        "".join(f"* {note}\n" for note in doubts(methods, empty)),
        *(_table_section(table, folder.name) for table in made),
        *(_picture_section(title, same, folder.name) for title, same in groupby(drawn, lambda one: one.title)),
        f"## Differences\n\n{differing.markdown()}" if differing else "",
        f"## Runs\n\n{runs(methods).markdown()}",
    ]
    write_atomically(page, "\n".join(section for section in sections if section).encode())
    return made


def _write_table(folder: Path, table: Table) -> None:
    write_atomically(folder / f"{table.name}.csv", table.frame().to_csv(index=False).encode())
    write_atomically(folder / f"{table.name}.md", table.grid().markdown().encode())
    write_atomically(folder / f"{table.name}.tex", table.grid().latex().encode())


def scope(methods: Sequence[Method]) -> str:
    """How many runs of how many methods."""
    count = sum(len(method.runs) for method in methods)
    told, kinds = f"{count} run{'s' * (count > 1)}", f"{len(methods)} method{'s' * (len(methods) > 1)}"
    return f"{told} of {kinds}; the runs of a method differ in the seed only."


def doubts(methods: Sequence[Method], empty: Sequence[Path]) -> list[str]:
    """What the reader must know before trusting a number, folders in backticks."""
    notes = []
    for method in methods:
        for run in method.runs:
            if not run.finished:
                notes.append(f"`{shown(run.folder)}` is unfinished: used up to round {run.rounds[-1]}, {_PARTLY}.")
        notes += _repeated(method)
    return notes + [f"`{shown(folder)}` is left out: it has no finished round." for folder in empty]


def _repeated(method: Method) -> Iterator[str]:
    """What was run again, and whether it came out the same."""
    for run in method.runs:
        again = [other for other in method.repeats if other.seed == run.seed]
        if not again:
            continue
        ends = {final(one.column("test_accuracy")) for one in (run, *again)}
        told = "all end with the same accuracy" if len(ends) == 1 else "they end with different accuracies"
        names = ", ".join(f"`{shown(other.folder)}`" for other in again)
        yield (
            f"{method.label}: seed {run.seed} was run {len(again) + 1} times; `{shown(run.folder)}` counts, "
            f"not {names}; {told}."
        )


def _table_section(table: Table, folder: str) -> str:
    files = ", ".join(f"[{ending}]({quote(f'{folder}/{table.name}.{ending}')})" for ending in ("csv", "md", "tex"))
    return f"## {table.title}\n\n{READING[table.name]}\n\n{table.grid().markdown()}\nFiles: {files}\n"


def _picture_section(title: str, same: Iterable[pictures.Picture], folder: str) -> str:
    figures = (f"![{title}]({quote(f'{folder}/{picture.name}.png')})\n\n{picture.caption}\n" for picture in same)
    return f"## {title}\n\n" + "\n".join(figures)


def differences(methods: Sequence[Method]) -> Grid | None:
    """Every group and key in which the methods differ."""
    first = [method.runs[0] for method in methods]
    groups = differing_options([options(run) for run in first])
    keys = [key for key in differing_keys(first) if not key.endswith("_target_")]
    if not groups and not keys:
        return None
    rows = [
        [method.label, *(options(run).get(name, "-") for name in groups), *(_setting(run, key) for key in keys)]
        for method, run in zip(methods, first, strict=True)
    ]
    return Grid(("method", *groups, *keys), rows, 1 + len(groups))


def _setting(run: Run, key: str) -> str:
    return short_text(settings(run)[key]) if key in settings(run) else "-"


def runs(methods: Sequence[Method]) -> Grid:
    """Where each run lies and what it was made with."""
    headings = ("folder", "method", "seed", "rounds", "state", "versions", "commit", "device")
    rows = [_run_row(method, run) for method in methods for run in (*method.runs, *method.repeats)]
    return Grid(headings, rows, len(headings))


def _run_row(method: Method, run: Run) -> list[str]:
    summary = run.summary or {}
    versions = ", ".join(f"{name} {version}" for name, version in (summary.get("versions") or {}).items())
    git = summary.get("git") or {}
    commit = f"{git['commit'][:10]}{' (changed)' if git.get('dirty') else ''}" if git.get("commit") else "-"
    state = "repeat" if run in method.repeats else "finished" if run.finished else "unfinished"
    seed = "-" if run.seed is None else str(run.seed)
    device = summary.get("device") or "-"
    return [shown(run.folder), method.label, seed, str(run.rounds[-1]), state, versions or "-", commit, device]
