"""Makes the pages of the published tables again, from the results in `scripts/replays`, without any run.

python scripts/replay_pages.py             writes them, and the tables in README.md and in scripts/replays/README.md
python scripts/replay_pages.py --check     says which page is out of date, and fails if one is
python scripts/replay_pages.py --again 10  runs the ten cheapest results once more and compares; fails if one differs
"""

import sys
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from fedexp.data.store import data_root
from fedexp.maths.significance import LEVEL
from fedexp.replay import overview, page, recheck, table
from fedexp.replay.page import JudgedCell
from fedexp.replay.results import Result
from fedexp.report.draw.markdown import Grid

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts import forest  # noqa: E402
from scripts.options import filled, write_or_check  # noqa: E402

KEPT = ROOT / "scripts" / "replays"
COUNTS = ("published", "run", "agree", "differ, explained", "differ, open", "disputed", "not resolved")


def pages() -> dict[Path, str]:
    """What the pages must hold."""
    held = overview.read_progress(KEPT)
    share = describe_agreement(held)
    tables = {
        "verdicts": f"\n{source_grid(held, is_short=True).markdown()}\n{share}\n",
        "progress": f"\n{source_grid(held).markdown()}\n{share}\n\n{describe_tables(held)}",
    }
    made = {path: filled(path.read_text(), tables) for path in (ROOT / "README.md", KEPT / "README.md")}
    for line in held:
        folder = KEPT / line.table.name
        if folder.is_dir():  # a page without any run can go stale as well
            documents = page.documents(line.table, line.judged_cells, "scripts/replays")
            made |= {folder / name: text for name, text in documents.items()}
    drawn = [forest.line_of(line.table.label, judged) for line in held for judged in page.numbers(line.judged_cells)]
    made[KEPT / "forest.svg"] = forest.svg([line for line in drawn if line is not None])
    return made


def describe_tables(held: Sequence[overview.TableProgress]) -> str:
    """How far each table is; those whose runs are too long for a core stand apart."""
    grids = [
        overview.progress_grid([line for line in held if line.needs_gpu is needs_gpu], is_short=True).markdown()
        for needs_gpu in (False, True)
    ]
    long = f"a run that is missing takes more than {overview.CORE_HOURS:g} hours of a core"
    return f"{grids[0]}\nLeft for a GPU, since {long}:\n\n{grids[1]}"


def source_grid(all_tables: Sequence[overview.TableProgress], *, is_short: bool = False) -> Grid:
    """A row for each source with published numbers, and one for all: how many were run, agree and differ.

    In the short one, sources without a verdict so far share a row.
    """
    counts: dict[str, Counter[str]] = {}
    for line in all_tables:
        counts.setdefault(line.table.label, Counter()).update(count_numbers(line.judged_cells))
    counts = {label: counted for label, counted in counts.items() if counted["published"]}
    rest = [label for label, counted in counts.items() if is_short and not counted["run"]]
    rows = {label: counted for label, counted in counts.items() if label not in rest}
    if rest:
        rows[f"{len(rest)} other{'s' * (len(rest) > 1)}"] = sum((counts[label] for label in rest), Counter())
    rows["all"] = sum(counts.values(), Counter())
    return Grid(
        ["source", *COUNTS], [[label, *(str(counted[name]) for name in COUNTS)] for label, counted in rows.items()]
    )


def count_numbers(cells: Sequence[JudgedCell]) -> Counter[str]:
    """How many numbers a table published, how many were run, and how many of these have each outcome."""
    outcomes = Counter({str(outcome): count for outcome, count in page.count_outcomes(cells).items()})
    explained = sum(bool(line.cell.explained) for line in page.numbers(cells) if line.verdict.outcome == "differs")
    return Counter(
        {
            "published": outcomes.total(),
            "run": sum(outcomes[outcome] for outcome in page.DECIDED),
            "agree": outcomes["agrees"],
            "differ, explained": explained,
            "differ, open": outcomes["differs"] - explained,
            **{name: outcomes[name] for name in ("disputed", "not resolved", "so far")},
        }
    )


def describe_agreement(all_tables: Sequence[overview.TableProgress]) -> str:
    """How many of the published numbers were run and agree, and how many would differ by chance, in words."""
    counted = sum((count_numbers(line.judged_cells) for line in all_tables), Counter[str]())
    run, several = counted["run"], sum((count_tried(line.judged_cells) for line in all_tables), Counter[str]())
    share = f" ({100 * counted['agree'] / run:.0f} %)" if run else ""
    differing = counted["differ, explained"] + counted["differ, open"]
    undecided = sum(count_undecided(line.judged_cells) for line in all_tables)
    return (
        f"Published numbers with all their seeds: {run}; {counted['agree']} agree{share}. Where several settings\n"
        f"were tried for one number, the best counts: so {several['agree']} of these {several['run']} agree, and "
        f"{counted['agree'] - several['agree']} of the {run - several['run']} with one so far.\n"
        f"If all were right, about {LEVEL * (run - several['run']):.0f} of these would differ by chance, and fewer of "
        f"the others. *Explained*: one\nchange of setting, which the page names, makes it agree. Of the {differing} "
        f"that differ, {undecided} have another setting with\nseeds still to run. Begun, without a verdict so far: "
        f"{counted['so far']}."
    )


def count_tried(cells: Sequence[JudgedCell]) -> Counter[str]:
    """Of the numbers that were run in several settings: how many there are, and how many agree."""
    settings = Counter(line.cell.published_number for line in cells if line.verdict.outcome in page.DECIDED)
    tried = [line.verdict.outcome for line in page.numbers(cells) if settings[line.cell.published_number] > 1]
    return Counter({"run": len(tried), "agree": tried.count("agrees")})


def count_undecided(cells: Sequence[JudgedCell]) -> int:
    """How many numbers differ by what was run, and have another setting that was not, or not to its end."""
    waiting = {line.cell.published_number for line in cells if line.verdict.outcome in ("so far", "not run")}
    differing = [line.cell.published_number for line in page.numbers(cells) if line.verdict.outcome == "differs"]
    return sum(number in waiting for number in differing)


def cheapest(count: int) -> list[tuple[str, Result]]:
    """The results that took least, with the names of their tables; at most half of them from one table."""
    chosen: list[tuple[str, Result]] = []
    for line in overview.read_progress(KEPT):
        found = sorted((one for cell in line.judged_cells for one in cell.results), key=lambda one: one.seconds)
        chosen += [(line.table.name, one) for one in found[: (count + 1) // 2]]
    return sorted(chosen, key=lambda named: named[1].seconds)[:count]


def run_again(count: int) -> int:
    """Runs the cheapest results again; 1 where one is not as it was written."""
    if not (data_root() / "MNIST").is_dir():
        print("no folder of real data, so that no published cell is run again; set FEDEXP_DATA")
        return 0
    faults = []
    for name, lines in groupby(sorted(cheapest(count), key=lambda named: named[0]), key=lambda named: named[0]):
        faults += recheck.run_again(table.load(name), [line for _, line in lines], print)
    print("\n".join(faults) if faults else f"{count} results came out as they were written")
    return int(bool(faults))


def main(words: list[str]) -> int:
    """Writes or checks the pages, or runs results again; 1 where something is not as it should be."""
    if words[:1] == ["--again"]:
        return run_again(int(words[1]))
    return write_or_check(pages(), words, "scripts/replays", "replay_pages.py")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
