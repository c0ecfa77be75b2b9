"""Writes docs/laws.md: the laws that the tests hold, from their `law` markers, and which of them public programs keep.

No test and no program is run: what programs did is in scripts/laws/results.csv.

python scripts/laws.py            writes
python scripts/laws.py --check    says whether the page is out of date, and fails if it is
"""

import ast
import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from textwrap import fill
from typing import Any

import yaml

from fedexp.config import catalog
from fedexp.report.draw.markdown import Grid

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts.options import COLUMNS, CONF, write_or_check  # noqa: E402

TESTS = ROOT / "tests"
PAGE = ROOT / "docs" / "laws.md"
PROGRAM_FOLDER = ROOT / "scripts" / "laws"
MARKER = "pytest.mark.law"
FORM = f'@{MARKER}("GROUP=OPTION", "the law in one line"), or "GROUP" for each of its options, above a test'
HEAD = """
# Laws

A law is a sentence about a method that follows from its formula: a limit ("mu = 0 is FedAvg"), an identity, a fixed
point, or what does not matter; a few, with a number in them, are results on one data set. Each of these {count} laws is
held by the test under it. "To the byte" means that every bit is the same; the other tests allow for rounding, or for
chance where something is drawn. A law of a whole group holds for each of its options.

The tests of one method, and those of all:

    pytest -m law tests/parts/local/test_feddyn.py
    pytest -m law

`python scripts/laws.py` makes this page from the markers of the tests: `{marker}(option, law)`.
"""

ON_PROGRAMS = """
## Public programs on two quadratics

Here programs were installed and run whole, by `python scripts/laws/run.py`; what was only read is not in the table.
Two clients take part in every round, with the costs c / 2 |w - m|^2: curvatures c of 1 and 3, minima m of (0, 1) and
(4, -1). The first model is (1, 1), the joint optimum (3, -0.5). The quadratics stand where a program takes the
cross-entropy; model and data are ours, a batch is all of a client's examples, and steps, rounds and rate are those
below. What else was set, such as the parameters of a method or that nothing is clipped, stands in `scripts/laws`, in
the METHODS of `run_*.py`; the rest is as the program has it. A program keeps a law if it ends within {tolerance:g} of
where the law says. Whoever mends a program gets a new line.
"""
TOLERANCE = 0.005
FAR = 1e4


@dataclass(frozen=True, order=True)
class Law:
    """What holds of an option, or of all options of a group where `option` is empty, and the test that shows it."""

    group: str
    option: str
    sentence: str
    test: str


def collect_laws(folder: Path, conf: Path = CONF) -> list[Law]:
    """The laws in the test files of a folder, sorted.

    Raises:
        SystemExit: A marker is not above a test, has not two texts, or names an option that `conf` lacks.
    """
    files = sorted(folder.rglob("test_*.py"))
    return sorted(law for file in files for law in file_laws(file, file.relative_to(folder.parent).as_posix(), conf))


def file_laws(file: Path, label: str, conf: Path) -> Iterator[Law]:
    """The laws in one file of tests, which tests are called by `label`."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    marks = {id(node): node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and _is_marker(node)}
    for name, test in _tests(tree):
        for mark in test.decorator_list:
            if isinstance(mark, ast.Call) and marks.pop(id(mark.func), None):
                yield _law(mark, f"{label}::{name}", f"{label}:{mark.lineno}", conf)
    for mark in marks.values():
        raise SystemExit(f"{label}:{mark.lineno} must be {FORM}")


def page(laws: Sequence[Law]) -> str:
    """The page: a chapter for each group in the order of a run's config, a list for each option."""
    lines = [HEAD.lstrip().format(count=len(laws), marker=MARKER)]
    for group, purpose in catalog.purposes(CONF).items():
        members = [law for law in laws if law.group == group]
        if members:
            lines += [f"## {group}", "", f"{purpose[0].upper()}{purpose[1:]}.", "", *_chapter(members)]
    return "\n".join(lines).rstrip() + "\n" + program_table(*read_programs(PROGRAM_FOLDER))


def read_programs(folder: Path) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, str]]]:
    """What was tried on public programs, by its name, the programs, by theirs, and a line for each run of one."""
    tries, programs = (
        yaml.safe_load((folder / name).read_text(encoding="utf-8")) for name in ("laws.yml", "programs.yml")
    )
    with (folder / "results.csv").open(newline="", encoding="utf-8") as file:
        return tries, programs, [*csv.DictReader(file)]


def program_table(tries: Mapping[str, Any], programs: Mapping[str, Any], runs: Sequence[Mapping[str, str]]) -> str:
    """The chapter on public programs: for each law where each program ended, and whether that keeps the law."""
    ends = {(run["program"], run["law"]): run for run in runs}
    text = [ON_PROGRAMS.format(tolerance=TOLERANCE)]
    for name, how in tries.items():
        if ran := [run for run in runs if run["law"] == name]:
            option, sentence = how["law"]
            size = f"{how['steps']} steps a round, {how['rounds']} rounds, rate {how['rate']:g}"
            rows = [
                [f"{run['program']} {run['version']}", run["file"], _end(run), _verdict(how, run, ends), run["date"]]
                for run in ran
            ]
            heads = ["program", "file", "ends at", "keeps it", "date"]
            table = Grid(heads, rows, texts=len(heads)).markdown()
            text += [fill(f"`{option}`: {sentence} ({size}).", COLUMNS, break_on_hyphens=False) + "\n", table]
            text += [
                fill(_cause(run, cause), COLUMNS, break_on_hyphens=False) + "\n"
                for run in ran
                if (cause := programs[run["program"]].get("causes", {}).get(name, "")) or run["error"]
            ]
    return "\n".join(text)


def _cause(run: Mapping[str, str], cause: str) -> str:
    """Why a program does not keep a law, or the last words of its run."""
    last = f"its run ended with `{run['error']}`" if run["error"] else ""
    return f"{run['program']}: {'; '.join(filter(None, (last, cause)))}."


def _end(run: Mapping[str, str]) -> str:
    """Where a run ended, in thousandths; - where it failed."""
    if run["error"]:
        return "-"
    point = [float(run[axis]) for axis in "xy"]
    if not all(abs(value) < FAR for value in point):
        return "diverges"
    return f"({', '.join(f'{round(value, 3) + 0:.3f}' for value in point)})"  # + 0: no -0.000


def _verdict(how: Mapping[str, Any], run: Mapping[str, str], ends: Mapping[tuple[str, str], Mapping[str, str]]) -> str:
    """Whether a run ended where it must, or where the run that it must equal ended; - where one of them failed."""
    other = ends[run["program"], how["like"]] if "like" in how else None
    if run["error"] or (other and other["error"]) or not {"like", "ends_at"} & set(how):
        return "-"
    wanted = [float(other["x"]), float(other["y"])] if other else how["ends_at"]
    gaps = [abs(float(run[axis]) - goal) for axis, goal in zip("xy", wanted, strict=True)]
    return "yes" if all(gap <= TOLERANCE for gap in gaps) else "no"  # no gap from NaN is small


def main(words: list[str]) -> int:
    """Writes or checks the page; 1 where it is out of date."""
    made: Mapping[Path, str] = {PAGE: page(collect_laws(TESTS))}
    return write_or_check(made, words, "tests/", "laws.py")


def _tests(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The tests of a file by their names, those in classes as pytest writes them."""
    for node in tree.body:
        inside = [(f"{node.name}::", each) for each in node.body] if isinstance(node, ast.ClassDef) else [("", node)]
        for prefix, test in inside:
            if isinstance(test, ast.FunctionDef) and test.name.startswith("test_"):
                yield f"{prefix}{test.name}", test


def _is_marker(node: ast.Attribute) -> bool:
    return ast.unparse(node) == MARKER


def _law(mark: ast.Call, test: str, line: str, conf: Path) -> Law:
    texts = [arg.value for arg in mark.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    if len(texts) != 2 or len(mark.args) != 2 or mark.keywords or not texts[1].strip():
        raise SystemExit(f"{line} must be {FORM}")
    group, is_one, option = texts[0].partition("=")
    if group not in catalog.groups(conf) or (is_one and option not in catalog.options(conf, group)):
        raise SystemExit(f"{line} names {texts[0]}, which conf/ does not hold; it must be {FORM}")
    return Law(group, option, texts[1], test)


def _chapter(laws: Sequence[Law]) -> Iterator[str]:
    for option, members in groupby(laws, key=lambda law: law.option):
        yield from (f"### {_title(laws[0].group, option)}", "")
        for law in members:
            yield fill(f"* {law.sentence}:", COLUMNS, subsequent_indent="  ", break_on_hyphens=False)
            yield f"  `{law.test}`"
        yield ""


def _title(group: str, option: str) -> str:
    return f"{group}={option}" if option else f"every option of {group}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
