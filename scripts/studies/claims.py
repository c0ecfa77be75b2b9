"""What the cells of a table say of a source's claims: each is about one cell, two cells with the same seeds, or none.

A claim about one cell has the verdict of `fedexp replay`. Of two cells A and B the seeds that both have are paired as
`fedexp compare` pairs them. `above` claims that A is larger, which the test of `compare` decides (never with fewer than
six pairs); `alike` that the two differ by at most `within`, which the 95 % interval of the difference decides; `beside`
is a question of ours: do the two differ?

A claim says whose it is: *quoted* with its place in the source, *read* into the source's words, or *ours*.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fedexp.compare import statistics
from fedexp.compare.statistics import PairedStatistics
from fedexp.replay import overview, page
from fedexp.replay.page import JudgedCell
from fedexp.replay.results import Result

WORDS = ("reproduced", "contradicted", "disputed", "not resolved", "so far", "no number", "not run")
KINDS = ("above", "alike", "beside")
READ, OURS = "read into it", "ours"


@dataclass(frozen=True)
class Claim:
    """What a source says, what bears on it, and what came out."""

    says: str
    shown: str
    ours: str
    seeds: str
    word: str
    note: str = ""
    whose: str = READ


def claimed(node: Mapping[str, Any], cells: Mapping[str, JudgedCell]) -> Claim:
    """The claim of a node of page.yml; `quoted` tells its place in the source, `ours: true` that it is none of it."""
    whose = f"quoted: {node['quoted']}" if "quoted" in node else OURS if node.get("ours") or "beside" in node else READ
    return replace(_judged(node, cells), whose=whose)


def _judged(node: Mapping[str, Any], cells: Mapping[str, JudgedCell]) -> Claim:
    says, note = node["says"], node.get("note", "")
    if "cell" in node:
        return _of_cell(says, cells[node["cell"]], note)
    kinds = [kind for kind in KINDS if kind in node]
    if not kinds:
        return Claim(says, "-", "-", "0", node["word"], node["why"])
    first, second = (cells[name] for name in node[kinds[0]])
    return _of_pair(says, kinds[0], first, second, node.get("within"), note)


def _of_cell(says: str, line: JudgedCell, note: str) -> Claim:
    word = {"agrees": "reproduced", "differs": "contradicted"}.get(line.verdict.outcome, line.verdict.outcome)
    published = "" if line.cell.published is None else f"; published {page.format_published(line.cell.published)}"
    ours = estimate([line]) if word == "not run" else page.format_ours(line)
    return Claim(says, line.cell.name + published, ours, str(len(line.results)), word, note)


def _of_pair(says: str, kind: str, first: JudgedCell, second: JudgedCell, within: float | None, note: str) -> Claim:
    between = {"above": ">", "alike": f"within {within or 0.0:g} of", "beside": "against"}[kind]
    shown = f"{first.cell.name} {between} {second.cell.name}"
    found = paired(first, second)
    if found is None:
        return Claim(says, shown, estimate([first, second]), "0", "not run", note)
    few = "; too few pairs" if kind == "above" and found.verdict == "too few pairs" else ""
    return Claim(says, shown, difference(found) + few, str(found.pairs), decided(kind, found, within), note)


def paired(first: JudgedCell, second: JudgedCell) -> PairedStatistics | None:
    """The two cells over the seeds that both have; None where they have none.

    A run that did not reach an accuracy counts as one that would have in the round after its last.
    """
    ours, theirs = ({one.seed: _counted(line, one) for one in line.results} for line in (first, second))
    seeds = sorted(set(ours) & set(theirs))
    if not seeds:
        return None
    one = statistics.compare([ours[seed] for seed in seeds], [theirs[seed] for seed in seeds], higher_is_better=True)
    return statistics.add_verdicts([one])[0]


def _counted(line: JudgedCell, one: Result) -> float | None:
    return one.censored_value if line.cell.measure.threshold is not None else one.value


def decided(kind: str, found: PairedStatistics, within: float | None) -> str:
    """The word on a pair of cells."""
    if kind == "beside":
        low, high = found.low, found.high
        if low is None or high is None:
            return "so far"
        return "no difference seen" if low <= 0 <= high else "they differ"
    if kind == "above":
        return {"A better": "reproduced", "B better": "contradicted", "identical": "contradicted"}.get(
            found.verdict, "not resolved"
        )
    if found.low is None or found.high is None or within is None:
        return "not resolved"
    if found.low > within or found.high < -within:
        return "contradicted"
    return "reproduced" if -within <= found.low and found.high <= within else "not resolved"


def difference(found: PairedStatistics) -> str:
    """The two means, and their difference with its interval."""
    if found.a is None or found.b is None or found.difference is None:
        return f"only the first got there in {found.only_a}, only the second in {found.only_b}"
    told = f"{found.a:.4g} - {found.b:.4g} = {found.difference:+.4g}"
    return told if found.low is None or found.high is None else f"{told} ({found.low:+.3g} to {found.high:+.3g})"


def estimate(lines: Sequence[JudgedCell]) -> str:
    """What it takes to run what is missing of these cells."""
    left = [minutes for there, minutes in overview.runs(lines, lambda one: one.cell.minutes) if not there]
    minutes = f"{sum(left):,.0f}" if sum(left) >= 100 else f"{sum(left):.3g}"
    return f"{len(left)} run{'s' * (len(left) != 1)}, about {minutes} min" if left else "none"
