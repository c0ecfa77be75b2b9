"""The pages of the studies: made again from their results, and what they say of a claim, by hand."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from script_modules import imported

from fedexp.replay import results
from fedexp.replay.page import JudgedCell
from fedexp.replay.published import Published
from fedexp.replay.quantity import CellQuantity
from fedexp.replay.results import Result
from fedexp.replay.table import Cell
from fedexp.replay.verdict import judge

STUDIES = Path(__file__).parents[1] / "scripts" / "studies"
ROUNDS = CellQuantity.parse("roa@0.8", "")
OTHERS = {"shapley", "benchmarks", "pacing", "report"}  # made and tested elsewhere; the last has no result


@pytest.fixture
def scripts() -> Iterator[list[ModuleType]]:
    """What judges claims, and what makes the pages."""
    with imported(STUDIES, "claims", "remake") as found:
        yield found


def line(name: str, *values: float | None, published: Published | None = None, minutes: float = 2.0) -> JudgedCell:
    """A cell of eight seeds whose first ones have these values."""
    cell = Cell(
        name, (f"rounds={len(name)}",), CellQuantity("test_accuracy", "test_accuracy"), 8, published, (), minutes
    )
    found = [
        Result(name, seed, cell.fingerprint, value, 30, "", 60.0, "fedexp 0", "") for seed, value in enumerate(values)
    ]
    return JudgedCell(cell, found, judge(published, results.our_values(found, cell)))


def test_every_page_is_made_again(scripts: list[ModuleType]):
    made = scripts[1].made()
    for path, text in made.items():
        assert path.read_text() == text, f"{path} is not what python scripts/studies/remake.py makes"
    pages = {path for path in STUDIES.rglob("*.md") if path.parent.name not in OTHERS}
    assert pages == {path for path in made if STUDIES in path.parents}


def test_a_page_that_is_not_made_has_no_result():
    assert not re.search(r"\d\.\d", (STUDIES / "report" / "README.md").read_text())


def test_a_pair_by_hand(scripts: list[ModuleType]):
    """Differences 0.1, 0.2, 0.3: 0.2 -+ 4.303 * 0.1 / sqrt(3), which three pairs cannot tell from 0."""
    cells = {"a": line("a", 0.5, 0.7, 0.9), "b": line("b", 0.4, 0.5, 0.6)}
    found = scripts[0].claimed({"says": "more", "above": ["a", "b"]}, cells)
    assert found.ours == "0.7 - 0.5 = +0.2 (-0.0484 to +0.448); too few pairs"
    assert (found.shown, found.seeds, found.word) == ("a > b", "3", "not resolved")


def test_who_never_gets_there_takes_more_rounds(scripts: list[ModuleType]):
    """Runs of 30 rounds that did not reach it count as 31."""
    fast, slow = line("fast", *[4.0, 6.0] * 4), line("slow", *[None] * 8)
    cells = {one.cell.name: replace(one, cell=replace(one.cell, measure=ROUNDS)) for one in (fast, slow)}
    found = scripts[0].claimed({"says": "more", "above": ["slow", "fast"]}, cells)
    assert (found.ours, found.word) == ("31 - 5 = +26 (+25.1 to +26.9)", "reproduced")
    assert scripts[0].claimed({"says": "more", "above": ["fast", "slow"]}, cells).word == "contradicted"


def test_only_seeds_that_both_have_count(scripts: list[ModuleType]):
    cells = {"a": line("a", *[0.9 + 0.001 * seed for seed in range(8)]), "b": line("b", *[0.8] * 6)}
    found = scripts[0].claimed({"says": "more", "above": ["a", "b"]}, cells)
    assert (found.seeds, found.word) == ("6", "reproduced")
    assert scripts[0].claimed({"says": "more", "above": ["b", "a"]}, cells).word == "contradicted"
    assert scripts[0].claimed({"says": "more", "beside": ["b", "a"]}, cells).word == "they differ"


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ((0.9, 0.9, 0.9), "reproduced"),
        ((0.92, 0.92, 0.92), "contradicted"),
        ((0.9, 0.92, 0.91), "not resolved"),
        ((0.9, 0.9), "not resolved"),  # no interval of two
    ],
)
def test_alike_is_decided_by_the_interval(scripts: list[ModuleType], values: tuple[float, ...], word: str):
    cells = {"a": line("a", *values), "b": line("b", 0.9, 0.9, 0.9)}
    assert scripts[0].claimed({"says": "alike", "alike": ["a", "b"], "within": 0.01}, cells).word == word


def test_one_cell_has_the_verdict_of_the_replay(scripts: list[ModuleType]):
    cells = {
        "a": line("a", *[5] * 8, published=Published(5)),
        "b": line("b", *[3] * 8, published=Published(5)),
        "c": line("c", *[3] * 8),
        "d": line("d", published=Published(5)),
        "e": line("e", *[3] * 7, published=Published(5)),
    }
    words = [scripts[0].claimed({"says": "n", "cell": name}, cells).word for name in "abcde"]
    assert words == ["reproduced", "contradicted", "no number", "not run", "so far"]
    assert scripts[0].claimed({"says": "n", "cell": "d"}, cells).ours == "8 runs, about 16 min"


def test_cells_of_one_run_are_run_once(scripts: list[ModuleType]):
    """The names have equally many letters, so the words are the same: 8 runs of 2 minutes, one of them done."""
    assert scripts[0].estimate([line("a"), line("b", 0.5)]) == "8 runs, about 16 min"
    assert scripts[0].estimate([line("a", 0.5), line("bb", *[0.5] * 8)]) == "7 runs, about 14 min"


def test_a_row_without_cells_is_told(scripts: list[ModuleType]):
    node = {"of": "n", "rows": ["b"], "columns": ["x", "y"]}
    assert scripts[1].grid(node, {"b, y": line("b, y", 0.5)}).rows == [["b", "-", "0.5", "1", "7 runs, about 14 min"]]
    with pytest.raises(KeyError, match="no cell of the table begins with b"):
        scripts[1].grid(node, {"a, y": line("a, y", 0.5)})


def test_a_bad_draw_by_hand(scripts: list[ModuleType]):
    """One of 4 is malicious, 2 are asked: told f = 1, so never more; half of all rounds have one."""
    ((*_, told, often, ever),) = scripts[1].draws([{"clients": 4, "malicious": 1, "asked": 2, "rounds": 3}]).rows
    assert (told, often, ever) == ("1", "0", "0")


def test_means_of_earlier_runs_have_their_interval(scripts: list[ModuleType]):
    """4.303 * 0.1 / sqrt(3) = 0.2484 either way."""
    assert scripts[1].interval(0.7, 0.1, 3) == "0.7 (0.4516 to 0.9484)"
    assert scripts[1].mean([0.6, 0.7, 0.8]) == "0.7 (0.4516 to 0.9484)"
