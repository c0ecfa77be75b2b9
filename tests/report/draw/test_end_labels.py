"""Names at the ends of curves: which, where, and never one over another."""

from itertools import pairwise

import numpy as np
import pytest

from fedexp.report.draw import band, bands, end_labels, style
from fedexp.report.read.methods import group_runs
from fedexp.report.read.runs import collect_runs

LINES = bands.PlotSpec(name="x", title="Test accuracy", vertical="Accuracy")


@pytest.mark.parametrize(
    ("heights", "apart"),
    [
        ([0.1, 0.5], [0.1, 0.5]),  # far enough
        ([0.5, 0.5], [0.4, 0.6]),  # around their mean, in the order of the methods
        ([0.6, 0.5, 0.1], [0.65, 0.45, 0.1]),
        ([0.3, 0.4, 0.5], [0.2, 0.4, 0.6]),
    ],
)
def test_labels_move_as_little_as_they_can(heights, apart):
    assert end_labels.spread(np.array(heights), 0.2).tolist() == pytest.approx(apart)


def test_labels_stay_within_the_drawing():
    assert end_labels.spread(np.array([0.95, 0.9, 1.0]), 0.2, 0.0, 1.0).tolist() == pytest.approx([0.8, 0.6, 1.0])
    assert end_labels.spread(np.array([0.0, 0.0, 0.7]), 0.2, 0.1, 1.0).tolist() == pytest.approx([0.1, 0.3, 0.7])


@style.style()
def test_the_names_of_a_dozen_curves_that_end_alike_are_not_cut(make_run, tmp_path):
    for number in range(style.CROWD):
        make_run(str(number), choices={"selector": f"s{number}"})
    methods = group_runs(collect_runs([tmp_path])[0])
    picture = bands.picture(LINES, methods, band.by_round("test_accuracy"))
    assert picture is not None
    picture.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in picture.figure.axes[0].texts]
    assert len(boxes) == style.CROWD
    assert min(box.y0 for box in boxes) >= 0
    assert max(box.y1 for box in boxes) <= picture.figure.bbox.height


@style.style()
def test_a_name_and_the_last_value_that_all_seeds_have(make_run, tmp_path):
    make_run("0", seed=0, accuracy=(0.2, 0.4, 0.9))
    make_run("1", seed=1, accuracy=(0.4, 0.6))
    make_run("2", accuracy=(0.1, 0.2, 0.3), choices={"selector": "a_rather_long_name_of_a_selector"})
    methods = group_runs(collect_runs([tmp_path])[0])
    picture = bands.picture(LINES, methods, band.by_round("test_accuracy"))
    assert picture is not None
    assert [text.get_text() for text in picture.figure.axes[0].texts] == ["random 0.500", "#2 0.300"]
    leaders = picture.figure.axes[0].lines[-2:]
    assert {line.get_color() for line in leaders} == {style.QUIET}, "nobody takes them for data"
    assert style.label_with_seeds(methods[1]) == "#2 a_rather_long_name_of_a_selector", "the legend has the number, too"


@style.style()
def test_neighbours_differ_by_their_dashes(make_run, tmp_path):
    for number in range(5):
        make_run(str(number), choices={"selector": f"s{number}"})
    lines = [style.line_style(method) for method in group_runs(collect_runs([tmp_path])[0])]
    assert all(one["linestyle"] != other["linestyle"] for one, other in pairwise(lines))
