"""Makes the pages of the studies from their results: no result on them was typed.

    python scripts/studies/remake.py            # writes README.md of every study, and of the studies as a whole

`NAME/page.yml` says what a page is about and which cells of `conf/replay/TABLE.yml` bear on which claim of the source.
The results are those that `fedexp replay TABLE --into scripts/replays` keeps; `python scripts/replay_pages.py` makes
the pages of their cells. `NAME/earlier.csv` has means of runs that were made before there were replays, with their
command, seeds and deviation.
"""

import csv
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
import yaml
from claims import OURS, WORDS, Claim, claimed, estimate
from scipy import stats

from fedexp.replay import page, results, table
from fedexp.replay.page import JudgedCell
from fedexp.report.draw.markdown import Grid

HERE = Path(__file__).parent
REPLAYS = HERE.parent / "replays"
DRAWN = ("clients", "malicious", "asked", "rounds")
OTHERS = """\
| page                                  | what it shows                                   |
| ------------------------------------- | ----------------------------------------------- |
| [Shapley values](shapley/README.md)   | how near each estimator comes, and at what cost |
| [Matching](pfnm_oneshot/README.md)    | PFNM and SPAHM once, with the published grid    |
| [Pacing](pacing/README.md)            | synchronous and asynchronous, on four fleets    |
| [The report page](report/README.md)   | what `fedexp report` makes of a sweep           |
| [Benchmarks](benchmarks/README.md)    | how fast all of it is                           |
"""
INDEX = """\
# Studies

Each source's claims, figures and tables, run again: the published number beside ours, with seeds, interval and verdict.
The pages of these sources are made by `python scripts/studies/remake.py` from results that `fedexp replay` keeps, one
line a run; tables headed *Earlier runs* are of older logs.

A claim is quoted, with its place in the source, or read into its words. It is *reproduced* or *contradicted*, else *not
resolved*:

* That one of two settings is better: by the paired test of `fedexp compare`, which takes six seeds.
* That two are alike: where the 95 % interval lies within the tolerance that the page gives, which is ours.
* That something has a value: by the rule of `fedexp replay`. *No number* means that the source gives none.

Of two settings beside each other *they differ* where the 95 % interval of their difference is on one side of zero, else
*no difference seen*, and *so far* below three seeds. These words are said before all planned seeds are run, and a later
seed may change them. What we asked ourselves is counted apart. What has not been run says what it would take: minutes
of one idle core, estimated from a few runs and older logs.
"""


def study(folder: Path) -> tuple[dict[str, Any], dict[str, JudgedCell]]:
    """The page of a study as it is described, and the cells of its table by name."""
    told = yaml.safe_load((folder / "page.yml").read_text())
    if "table" not in told:
        return told, {}
    found = table.load(told["table"])
    lines = page.judge_cells(found, results.read(REPLAYS / found.name))
    return told, {line.cell.name: line for line in lines}


def markdown(folder: Path) -> str:
    """The page of a study."""
    told, cells = study(folder)
    parts = [f"# {told['title']}", told.get("text", "").strip()]
    for section in told["sections"]:
        parts += [f"## {section['title']}", section.get("text", "").strip(), *shown(section, cells, folder)]
        parts.append(section.get("after", "").strip())
    if cells:
        parts += _cells(told["table"], list(cells.values()))
    return "\n\n".join(part for part in parts if part) + "\n"


def shown(section: Mapping[str, Any], cells: Mapping[str, JudgedCell], folder: Path) -> Iterator[str]:
    """Its claims, grids of cells, points of a file and earlier runs, as tables."""
    if "claims" in section:
        found = [claimed(node, cells) for node in section["claims"]]
        head = ["claim", "whose", "shown by", "ours (95 %)", "seeds", "verdict"]
        rows = [[one.says, one.whose, one.shown, one.ours, one.seeds, one.word] for one in found]
        yield Grid(head, rows, 3).markdown().strip()
        yield "\n".join(f"* {one.says}: {one.note}" for one in found if one.note)
    for node in section.get("grids", []):
        yield grid(node, cells).markdown().strip()
    if "draws" in section:
        yield draws(section["draws"]).markdown().strip()
    if "points" in section:
        yield points(section["points"], folder).markdown().strip()
    if "rows" in section:
        with (folder / section["rows"]).open(newline="") as file:
            head, *lines = csv.reader(file)
        yield Grid(head, lines, 1).markdown().strip()
    if "earlier" in section:
        yield "Earlier runs, not made again since:"
        yield earlier(section["earlier"], folder).markdown().strip()


def grid(node: Mapping[str, Any], cells: Mapping[str, JudgedCell]) -> Grid:
    """A table with a row for each `rows` and a column for each `columns`; a cell is called `ROW, COLUMN`."""
    rows = []
    for name in node["rows"]:
        own = [cells.get(f"{name}, {column}") for column in node["columns"]]
        known = [line for line in own if line is not None]
        if not known:
            raise KeyError(f"no cell of the table begins with {name}")
        seeds = sorted({len(line.results) for line in known})
        texts = ["-" if line is None else page.format_ours(line) for line in own]
        rows.append([name, *texts, "-".join(str(count) for count in seeds[:1] + seeds[1:][-1:]), estimate(known)])
    return Grid([node["of"], *node["columns"], "seeds", "still to run"], rows)


def draws(nodes: Sequence[Mapping[str, int]]) -> Grid:
    """How often a round, and some round of a run, brings more malicious clients than a rule is told to bear."""
    rows = []
    for node in nodes:
        drawn = stats.hypergeom(node["clients"], node["malicious"], node["asked"])
        told = int(drawn.ppf(0.99))
        often = float(drawn.sf(told))
        ever = 1 - (1 - often) ** node["rounds"]
        rows.append([*(str(node[key]) for key in DRAWN), str(told), f"{often:.2g}", f"{ever:.2g}"])
    return Grid([*DRAWN, "f told", "more in a round", "more in some round"], rows, 0)


def points(node: Mapping[str, Any], folder: Path) -> Grid:
    """Points of a grid that a file has, one line a seed: means and intervals, the best `most` by `best`."""
    groups: dict[tuple[str, ...], list[dict[str, str]]] = defaultdict(list)
    with (folder / node["file"]).open(newline="") as file:
        for row in csv.DictReader(file):
            groups[tuple(row[key] for key in node["by"])].append(row)
    means = {key: np.mean([float(row[node["best"]]) for row in rows]) for key, rows in groups.items()}
    order = sorted(groups, key=lambda key: -means[key])[: node["most"]]
    texts = [
        [*key, *(mean([float(row[name]) for row in groups[key]]) for name in node["show"]), str(len(groups[key]))]
        for key in order
    ]
    return Grid([*node["by"], *node["show"], "seeds"], texts, len(node["by"]))


def mean(values: Sequence[float]) -> str:
    """The mean of values with Student's 95 % interval."""
    return interval(float(np.mean(values)), float(np.std(values, ddof=1)), len(values))


def interval(centre: float, deviation: float, count: int) -> str:
    """A mean of `count` runs with Student's 95 % interval."""
    half = float(stats.t.ppf(0.975, count - 1)) * deviation / count**0.5
    return f"{centre:.4g} ({centre - half:.4g} to {centre + half:.4g})"


def earlier(file: str, folder: Path) -> Grid:
    """Means of earlier runs with their standard deviations and commands."""
    with (folder / file).open(newline="") as text:
        rows = list(csv.DictReader(text))
    told = []
    for row in rows:
        found = f"{float(row['mean']):.4g} ± {float(row['deviation']):.2g}"
        told.append([row["what"], row["command"], row["made"], found, row["seeds"]])
    return Grid(["what", "command", "made", "mean ± deviation", "seeds"], told, 3)


def _cells(name: str, lines: Sequence[JudgedCell]) -> list[str]:
    told = (
        f"{page.describe_counts(lines)}. Each with its command, published number, minutes "
        f"and seeds: [cells](../../replays/{name}/README.md). Still to run for all seeds that the table asks for: "
        f"{estimate(lines)} of an idle core."
    )
    return [
        "## Cells",
        "\n".join(wrap(told, 118, break_long_words=False, break_on_hyphens=False)),
        f"    fedexp replay {name} --into scripts/replays    # runs what is missing, the cheapest first\n"
        "    python scripts/studies/remake.py    # makes this page again",
    ]


def claims_of(folder: Path) -> list[Claim]:
    """All claims of a study."""
    told, cells = study(folder)
    return [claimed(node, cells) for section in told["sections"] for node in section.get("claims", [])]


def index() -> str:
    """The page of all studies."""
    rows, links = [], []
    for folder in folders():
        (told, cells), claims = study(folder), claims_of(folder)
        found = Counter(one.word for one in claims if one.whose != OURS)
        links.append(f"[{told['title']}]({folder.name}/README.md)")
        rows.append([f"{len(links)}".ljust(len(links[-1]), "."), *(str(found[word]) for word in WORDS)])
        rows[-1] += [str(sum(one.whose == OURS for one in claims)), estimate(list(cells.values()))]
    linked = Grid(["claims of", *WORDS, "asked by us", "still to run"], rows).markdown()
    for row, link in zip(rows, links, strict=True):
        linked = linked.replace(row[0], link, 1)
    return f"{INDEX}\n{linked}\nBesides:\n\n{OTHERS}"


def folders(*, all_of_them: bool = False) -> list[Path]:
    """The folders of the studies that have a table, or of all that have a page made here."""
    paths = [path for path in HERE.glob("*/page.yml") if all_of_them or "table:" in path.read_text()]
    return sorted(path.parent for path in paths)


def made() -> dict[Path, str]:
    """Every page that is made here, by its file: the studies' and that of all studies."""
    pages = {folder / "README.md": markdown(folder) for folder in folders(all_of_them=True)}
    return pages | {HERE / "README.md": index()}


if __name__ == "__main__":
    for path, text in made().items():
        path.write_text(text)
        sys.stdout.write(f"{path}\n")
