"""Means and ranges by hand, what is drawn of them, and how a line stays short."""

import numpy as np
import pytest

from fedexp.report.draw import band, bands, style
from fedexp.report.draw.band import Band
from fedexp.report.read.methods import group_runs
from fedexp.report.read.runs import collect_runs

LINES = bands.PlotSpec(name="x", title="Test loss", vertical="Loss", log=True)


@pytest.fixture
def methods(make_run, tmp_path):
    make_run("0", seed=0, accuracy=(0.2, 0.4, 0.6, 0.8))
    make_run("1", seed=1, accuracy=(0.4, 0.6))
    return group_runs(collect_runs([tmp_path])[0])


def test_a_band_by_hand():
    short, long = (np.array([1.0, 3.0]), np.array([0.0, 2.0])), (np.array([1.0, 2.0, 4.0]), np.array([2.0, 2.0, 6.0]))
    averaged = band.average_curves([short, long])
    assert averaged is not None
    assert averaged.x.tolist() == [1, 2, 3, 4]
    assert averaged.mean.tolist() == [1, 1.5, 3, 6]
    assert averaged.low.tolist() == [0, 1, 2, 6]
    assert averaged.high.tolist() == [2, 2, 4, 6]
    assert averaged.complete.tolist() == [True, True, True, False]
    assert band.average_curves([(np.zeros(0), np.zeros(0))]) is None


def test_positions_that_do_not_ascend_are_no_curve():
    damaged, sound = (np.array([1e200, 5.0]), np.array([0.0, 2.0])), (np.array([1.0, 2.0]), np.array([2.0, 2.0]))
    assert band.average_curves([damaged, sound]) is None


def test_a_band_begins_where_the_last_of_its_runs_does():
    early, late = (np.array([1.0, 4.0]), np.array([1.0, 4.0])), (np.array([2.0, 3.0]), np.array([0.0, 0.0]))
    averaged = band.average_curves([early, late])
    assert averaged is not None
    assert averaged.x.tolist() == [2, 3, 4]
    assert averaged.mean.tolist() == [1, 1.5, 4]


def test_thinning_keeps_both_ends():
    x = np.arange(1.0, 1001.0)
    thin = band.thin_out(Band(x, x, x, x, x > 0), 5)
    assert thin.x.tolist() == [1.0, 251.0, 501.0, 750.0, 1000.0]
    assert band.thin_out(thin, 5) is thin


@style.style()
def test_a_line_is_thin_and_pale_where_a_seed_is_missing(methods):
    picture = bands.picture(LINES, methods, band.by_round("test_accuracy"))
    assert picture is not None
    whole, partly, *_ = picture.figure.axes[0].lines
    assert np.asarray(whole.get_ydata())[:2] == pytest.approx([0.3, 0.5])
    assert np.isnan(np.asarray(whole.get_ydata())[2:]).all()
    assert (partly.get_linestyle(), partly.get_alpha()) == (whole.get_linestyle(), 0.6)
    assert partly.get_linewidth() < whole.get_linewidth()
    assert np.asarray(partly.get_ydata())[1:] == pytest.approx([0.5, 0.6, 0.8])


@style.style()
@pytest.mark.parametrize(
    ("first", "second", "shown"), [((0.2, 0.4), (0.4,), [0.3, 0.4]), ((None, 0.4), (0.6, None), [0.4])]
)
def test_a_line_of_one_or_two_positions_is_drawn_where_a_seed_is_missing(make_run, tmp_path, first, second, shown):
    make_run("0", seed=0, accuracy=first)
    make_run("1", seed=1, accuracy=second)
    picture = bands.picture(LINES, group_runs(collect_runs([tmp_path])[0]), band.by_round("test_accuracy"))
    assert picture is not None
    pale = [np.asarray(line.get_ydata()).tolist() for line in picture.figure.axes[0].lines if line.get_alpha() == 0.6]
    assert pale == [pytest.approx(shown)]


@style.style()
@pytest.mark.parametrize(("losses", "scale"), [([2.0, 20.0, 2e5, 2e6], "log"), ([2.0, 1.0, 0.5, 0.0], "linear")])
def test_a_loss_that_explodes_is_drawn_by_its_logarithm(make_run, tmp_path, losses, scale):
    make_run("0", metrics={"test_loss": losses})
    picture = bands.picture(LINES, group_runs(collect_runs([tmp_path])[0]), band.by_round("test_loss"))
    assert picture is not None
    assert picture.figure.axes[0].get_yscale() == scale


@style.style()
def test_a_single_round_is_a_point(make_run, tmp_path):
    make_run("0", accuracy=(0.3,))
    picture = bands.picture(LINES, group_runs(collect_runs([tmp_path])[0]), band.by_round("test_accuracy"))
    assert picture is not None
    assert picture.figure.axes[0].lines[1].get_marker() == "o"


@style.style()
def test_a_crowd_has_thin_lines_without_bands(methods):
    axes = style.canvas("T")[1]
    assert len(bands.draw(axes, methods * (style.CROWD + 1), band.by_round("test_accuracy"))) == style.CROWD + 1
    assert not axes.collections
    assert {line.get_linewidth() for line in axes.lines} == {0.8, 1.0}


@style.style()
def test_nothing_to_draw_is_no_picture(methods):
    assert bands.picture(LINES, methods, band.by_round("validation_accuracy")) is None
