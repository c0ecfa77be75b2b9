import math

import numpy as np
import pytest

from fedexp.replay.verdict import OurValues, Published, compare_with, difference, interval, judge


def test_welch_by_hand():
    # shares 4 / 4 = 1 and 2 / 2 = 1: e = sqrt(2), v = 4 / (1/3 + 1/1) = 3, t = 3.1824
    d, half = difference(10.0, 2.0, 4, np.array([12.0, 14.0]))
    assert d == 3.0
    assert half == pytest.approx(3.1824463 * math.sqrt(2), rel=1e-6)


def test_the_interval_of_a_mean_by_hand():
    # mean 2, sd 1, se 1 / sqrt(3), t with 2 degrees of freedom 4.3027
    mean, low, high = interval(np.array([1.0, 2.0, 3.0]))
    assert (mean, low, high) == (
        2.0,
        pytest.approx(2 - 4.3026527 / math.sqrt(3)),
        pytest.approx(2 + 4.3026527 / math.sqrt(3)),
    )
    assert interval(np.array([5.0])) == (5.0, None, None)


@pytest.fixture(scope="module")
def tables() -> np.random.Generator:
    return np.random.default_rng(0)


def shares(tables: np.random.Generator, off: float, runs: int = 10, seeds: int = 8) -> dict[str, float]:
    """How often a cell gets each word that is `off` standard deviations off what was published."""
    words: list[str] = []
    for _ in range(2000):
        theirs, ours = tables.normal(0.9, 0.01, runs), tables.normal(0.9 + 0.01 * off, 0.01, seeds)
        published = Published(float(theirs.mean()), float(theirs.std(ddof=1)), runs)
        words.append(compare_with(published, OurValues(tuple(ours.tolist()))))
    return {word: words.count(word) / len(words) for word in ("inside", "outside", "not resolved")}


def test_right_cells_are_inside_in_95_of_100(tables):
    found = shares(tables, 0.0)
    assert found["inside"] == pytest.approx(0.95, abs=0.015)
    assert found["outside"] == pytest.approx(0.05, abs=0.015)


def test_a_cell_two_standard_deviations_off_is_found(tables):
    assert shares(tables, 2.0)["outside"] > 0.95
    assert shares(tables, -2.0)["outside"] > 0.95


def test_too_few_seeds_resolve_nothing(tables):
    assert shares(tables, 0.0, runs=3, seeds=2)["not resolved"] > 0.3
    assert compare_with(Published(0.9, 0.01, 3), OurValues((0.9,))) == "not resolved"
    assert compare_with(Published(0.9, within=0.01), OurValues((0.9,))) == "not resolved"


@pytest.mark.parametrize(
    ("published", "values", "word"),
    [
        (Published(87, factor=1.5), (80, 90, 94), "inside"),  # 58 to 130.5
        (Published(87, factor=1.5), (200, 210, 220), "outside"),
        (Published(87, factor=1.5), (60, 130, 90), "not resolved"),
        (Published(0.81, within=0.01), (0.812, 0.813, 0.811), "inside"),
        (Published(0.81, within=0.01), (0.85, 0.86, 0.85), "outside"),
        (Published(1000, beyond=True), (1200, 1210, 1190), "inside"),
        (Published(1000, beyond=True), (700, 710, 720), "outside"),
    ],
)
def test_a_single_published_run_has_a_range(published, values, word):
    assert compare_with(published, OurValues(values)) == word


@pytest.mark.parametrize(
    ("published", "values", "limit", "word"),
    [
        (Published(87, factor=1.5), (None, None, None), 300, "outside"),  # later than 130.5 in any case
        (Published(87, factor=1.5), (None, None, None), 90, "not resolved"),
        (Published(87, factor=1.5), (85, None, 86), 87, "not resolved"),
        (Published(1000, beyond=True), (None, None, None), 1000, "inside"),
        (Published(1000, beyond=True), (None, None, None), 500, "not resolved"),
        (Published(87, 2.0, 5), (None, None, None), 300, "outside"),
        (Published(87, 2.0, 5), (None, None, None), 50, "not resolved"),
    ],
)
def test_runs_that_did_not_get_there(published, values, limit, word):
    assert compare_with(published, OurValues(values, limit)) == word


def test_rounding_is_no_difference():
    values = (0.8149, 0.8149, 0.8149)
    assert compare_with(Published(0.81, 0.0, 3), OurValues(values)) == "outside"
    assert compare_with(Published(0.81, 0.0, 3, rounding=0.005), OurValues(values)) == "inside"


def test_a_disputed_cell_says_whose_numbers_ours_agree_with():
    others = [("Flower", Published(0.99, 0.001, 3)), ("FedBench", Published(0.6199, 0.014, 3))]
    found = judge(Published(0.10, within=0.005), OurValues((0.9895, 0.99, 0.9905, 0.99)), others)
    assert (found.outcome, found.agrees) == ("disputed", ("Flower",))
    near = judge(Published(0.989, within=0.005), OurValues((0.9895, 0.99, 0.9905, 0.99)), others[:1])
    assert (near.outcome, near.agrees) == ("inside", ())


def test_nothing_to_compare():
    assert judge(None, OurValues((0.5, 0.6))).outcome == "no number"
    assert judge(Published(0.5), OurValues(())).outcome == "not run"
