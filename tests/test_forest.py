"""The forest plot: places on the axis by hand, one mark a number; the picture itself is checked with the pages."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from fedexp.replay.page import JudgedCell
from fedexp.replay.published import Published
from fedexp.replay.quantity import CellQuantity
from fedexp.replay.results import Result
from fedexp.replay.table import Cell
from fedexp.replay.verdict import Verdict
from scripts import forest


def judged(measure: str, published: float, expected: tuple[float, float], spread: float | None = None) -> JudgedCell:
    number = Published(published, spread=spread, runs=3 if spread else 1)
    cell = Cell("a", ("x=1",), CellQuantity.parse(measure, ""), 8, number)
    return JudgedCell(cell, [], Verdict("agrees", 0.5, 0.4, 0.6, expected))


def test_the_range_goes_from_minus_one_to_one():
    line = forest.line_of("A", judged("test_accuracy", 0.8, (0.2, 0.6), 0.1))
    assert line is not None
    assert (line.place, line.spread, line.ours) == (pytest.approx(2), pytest.approx(0.5), pytest.approx((0, 1)))


def test_rounds_are_placed_by_their_logarithms():
    line = forest.line_of("A", judged("roa@0.9", 100, (10, 1000)))
    assert line is not None
    assert line.place == pytest.approx(0)


def test_a_number_far_away_is_a_tip_at_the_edge():
    lines = [forest.Line("a", place, "differs", "v") for place in (0.0, 9.0, -9.0)]
    picture = ElementTree.fromstring(forest.svg(lines))
    tips = [node for node in picture if node.tag.endswith("path") and node.get("fill") == forest.COLORS["differs"]]
    assert len(tips) == 2


def test_a_line_says_the_least_and_the_most_where_an_interval_leaves_the_range_of_the_number():
    wide = judged("test_accuracy", 0.99, (0.5, 1.3))
    results = [Result("a", seed, "", value, 1, "", 1.0, "", "") for seed, value in enumerate((0.99, 0.98, 0.32))]
    line = forest.line_of("A", replace(wide, results=results, verdict=replace(wide.verdict, mean=0.763, high=1.1)))
    assert line is not None
    assert line.values == "0.99; ours 0.763 (runs from 0.32 to 0.99)"
