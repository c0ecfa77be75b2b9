import math
from itertools import product

import numpy as np
import pytest

from fedexp.replay.published import Published
from fedexp.replay.verdict import (
    OurValues,
    Scatter,
    expected_range,
    interval,
    judge,
    measure_scatter,
    moderate,
    usual_scatter,
)


def test_a_single_published_run_by_hand():
    # ours 1, 2, 3: mean 2, sd 1; t with 2 degrees of freedom 4.3027; sqrt(1 + 1/3)
    half = 4.3026527 * math.sqrt(4 / 3)
    assert expected_range(Published(5.0), OurValues((1.0, 2.0, 3.0))) == pytest.approx((2 - half, 2 + half))


def test_a_published_mean_by_hand():
    # squares: ours (12 - 13)^2 + (14 - 13)^2 = 2 with 1 degree, theirs 2^2 * 3 = 12 with 3; s^2 = 14 / 4 = 3.5
    # t with 4 degrees 2.7764; sqrt(3.5 * (1/4 + 1/2))
    half = 2.7764451 * math.sqrt(3.5 * 0.75)
    limits = expected_range(Published(10.0, 2.0, 4), OurValues((12.0, 14.0)))
    assert limits == pytest.approx((13 - half, 13 + half))


def test_counts_are_compared_by_their_logarithms():
    # logarithms of 10 and 40: mean log 20, sd log 4 / sqrt 2; t with 1 degree 12.7062; sqrt(3 / 2)
    half = 12.7062047 * math.log(4) / math.sqrt(2) * math.sqrt(1.5)
    limits = expected_range(Published(90), OurValues((10, 40), counts=True))
    assert limits == pytest.approx((20 * math.exp(-half), 20 * math.exp(half)))


def test_the_interval_of_a_mean_by_hand():
    # mean 2, sd 1, se 1 / sqrt(3), t with 2 degrees of freedom 4.3027
    mean, low, high = interval(np.array([1.0, 2.0, 3.0]))
    assert mean == 2.0
    assert (low, high) == (pytest.approx(2 - 4.3026527 / math.sqrt(3)), pytest.approx(2 + 4.3026527 / math.sqrt(3)))
    assert interval(np.array([5.0])) == (5.0, None, None)


class TestTheUsualScatter:
    def test_of_cells_that_scatter_alike_is_one_deviation(self):
        usual = usual_scatter([Scatter(1.0, 8.0), Scatter(1.1, 8.0), Scatter(0.9, 8.0), Scatter(1.0, 8.0)])
        assert usual is not None
        assert math.isinf(usual.freedom)
        assert usual.variance == pytest.approx(1.13, abs=0.01)  # exp(mean log s^2 - digamma(4) + log(4))
        assert moderate(Scatter(5.0, 2.0), usual) == usual

    def test_of_cells_that_do_not_leaves_each_its_own(self):
        usual = usual_scatter([Scatter(10.0**power, 8.0) for power in range(-6, 7, 2)])
        assert usual is not None
        assert usual.freedom < 0.5
        moderated = moderate(Scatter(4.0, 8.0), usual)
        assert moderated is not None
        assert moderated.variance == pytest.approx(4.0, rel=0.1)

    def test_is_found_again_where_it_is_known(self):
        """Variances drawn as the model says: s_0^2 f_0 / chi^2(f_0), measured with 6 degrees of freedom."""
        draws = np.random.default_rng(0)
        true = 4.0 * 10 / draws.chisquare(10, 5000)
        measured = true * draws.chisquare(6, 5000) / 6
        usual = usual_scatter(Scatter(float(variance), 6.0) for variance in measured)
        assert usual is not None
        assert usual.variance == pytest.approx(4.0, rel=0.05)
        assert usual.freedom == pytest.approx(10.0, rel=0.15)

    def test_needs_four_cells_that_scatter(self):
        assert usual_scatter([Scatter(1.0, 2.0), Scatter(2.0, 2.0), Scatter(0.0, 2.0), None, Scatter(1.0, 2.0)]) is None

    def test_by_hand(self):
        moderated = moderate(Scatter(4.0, 2.0), Scatter(1.0, 4.0))
        assert moderated == Scatter((2 * 4 + 4 * 1) / 6, 6.0)
        assert moderate(None, Scatter(1.0, 4.0)) == Scatter(1.0, 4.0)
        assert moderate(Scatter(4.0, 2.0), None) == Scatter(4.0, 2.0)


def share(outcome: str, runs: int, seeds: int, off: float, cells: int = 20, tables: int = 100) -> float:
    """How often cells of a table get an outcome that are so many deviations off.

    Deviations differ from cell to cell by a factor of two or so, as they do in the tables.
    """
    draws = np.random.default_rng([runs, seeds])
    outcomes: list[str] = []
    for _ in range(tables):
        pairs = []
        for deviation in np.exp(draws.normal(0, 0.5, cells)):
            theirs, ours = draws.normal(0, deviation, runs), draws.normal(off * deviation, deviation, seeds)
            spread = float(theirs.std(ddof=1)) if runs > 1 else None
            pairs.append((Published(float(theirs.mean()), spread, runs), OurValues(tuple(ours.tolist()))))
        usual = usual_scatter(measure_scatter(*pair) for pair in pairs)
        outcomes += [judge(*pair, usual=usual).outcome for pair in pairs]
    return outcomes.count(outcome) / len(outcomes)


DESIGNS = [*product((1, 3, 5, 10), (3, 5, 8))]


@pytest.mark.parametrize(("runs", "seeds"), DESIGNS)
def test_right_cells_agree(runs: int, seeds: int):
    assert share("agrees", runs, seeds, 0.0) >= 0.93


@pytest.mark.parametrize(
    ("runs", "seeds"), [(runs, seeds) for runs, seeds in DESIGNS if runs > 1 and (runs, seeds) != (3, 3)]
)
def test_cells_two_deviations_off_differ(runs: int, seeds: int):
    """Of three published runs three of ours are too few for that; of one, no number of ours is enough."""
    assert share("differs", runs, seeds, 2.0, tables=25) >= 0.6


@pytest.mark.parametrize(("seeds", "seen"), [(3, 0.30), (5, 0.34), (8, 0.40)])
def test_of_a_single_published_run_fewer_are_seen(seeds: int, seen: float):
    assert share("differs", 1, seeds, 2.0, tables=60) == pytest.approx(seen, abs=0.05)


@pytest.mark.parametrize(
    ("published", "values", "outcome"),
    [
        (Published(0.81), (0.812, 0.813, 0.811), "agrees"),  # .812 -+ .005
        (Published(0.81), (0.85, 0.86, 0.85), "differs"),
        (Published(0.81, rounding=0.005), (0.82, 0.82, 0.8201), "differs"),
        (Published(0.81, rounding=0.01), (0.82, 0.82, 0.8201), "agrees"),
        (Published(1000, beyond=True), (1200, 1210, 1190), "agrees"),
        (Published(1000, beyond=True), (700, 710, 720), "differs"),
        (Published(0.9, 0.01, 3), (0.9,), "agrees"),  # how it scatters is known from theirs
        (Published(0.9), (0.9,), "not resolved"),
    ],
)
def test_outcomes(published: Published, values: tuple[float, ...], outcome: str):
    assert judge(published, OurValues(values)).outcome == outcome


@pytest.mark.parametrize(
    ("published", "values", "limit", "outcome"),
    [
        (Published(87), (None, 300, 310), 320, "differs"),
        (Published(87), (85, None, 86), 87, "not resolved"),
        (Published(400), (85, None, 86), 87, "not resolved"),
        (Published(1000, beyond=True), (None, None, None), 1000, "agrees"),
        (Published(1000, beyond=True), (None, None, None), 500, "not resolved"),
    ],
)
def test_runs_that_did_not_get_there(published: Published, values: tuple[float | None, ...], limit: int, outcome: str):
    assert judge(published, OurValues(values, limit, counts=True)).outcome == outcome


def test_no_verdict_before_the_planned_seeds():
    begun = judge(Published(0.5), OurValues((0.9, 0.91, 0.92), planned=8))
    assert (begun.outcome, begun.mean) == ("so far", pytest.approx(0.91))
    assert judge(Published(0.5), OurValues((0.9, 0.91, 0.92), planned=3)).outcome == "differs"


def test_a_disputed_cell_says_whose_numbers_ours_agree_with():
    others = [("Flower", Published(0.99, 0.001, 3)), ("FedBench", Published(0.6199, 0.014, 3))]
    ours = OurValues((0.9895, 0.99, 0.9905, 0.99))
    verdict = judge(Published(0.10), ours, others)
    assert (verdict.outcome, verdict.agrees) == ("disputed", ("Flower",))
    near = judge(Published(0.989), ours, others[:1])
    assert (near.outcome, near.agrees) == ("agrees", ())


def test_nothing_to_compare():
    assert judge(None, OurValues((0.5, 0.6))).outcome == "no number"
    assert judge(Published(0.5), OurValues(())).outcome == "not run"


def test_the_draw_of_few_examples_widens_the_range_by_its_variance():
    """0.5 on 100 examples: a deviation of 0.05, beside runs that scatter by 0.01."""
    ours = OurValues((0.49, 0.50, 0.51))
    narrow, wide = (expected_range(Published(0.5, examples=size), ours) for size in (None, 100))
    assert narrow is not None
    assert wide is not None
    quantile = (narrow[1] - 0.5) / (0.01 * math.sqrt(4 / 3))
    assert wide[1] - 0.5 == pytest.approx(quantile * math.sqrt(0.01**2 * 4 / 3 + 0.05**2))
