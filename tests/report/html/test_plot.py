"""Where the lines of a drawing are, and what it carries for hovering."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from fedexp.report.bands import Band
from fedexp.report.html import plot
from fedexp.report.html.panels.learning import by_round
from fedexp.report.methods import group
from fedexp.report.runs import collect

AXES = plot.Axes(title="Test accuracy", horizontal="Round", vertical="Accuracy", zero=True)


@pytest.fixture
def methods(make_run, tmp_path: Path):
    make_run("a/0", seed=0, accuracy=(0.2, 0.4, 0.6))
    make_run("a/1", seed=1, accuracy=(0.4, 0.6, 1.0))
    return group(collect([tmp_path])[0])


def numbers(figure: str) -> dict:
    (text,) = re.findall(r"<script[^>]*>(.*?)</script>", figure, re.DOTALL)
    return json.loads(text)


def test_the_mean_and_the_range_of_two_seeds(methods):
    data = numbers(plot.draw(AXES, methods, lambda run: by_round(run, "test_accuracy")))
    assert data["x"] == [[1, 2, 3]]
    assert data["lines"] == [{"m": 0, "x": 0, "y": [0.3, 0.5, 0.8], "l": [0.2, 0.4, 0.6], "h": [0.4, 0.6, 1]}]
    assert data["box"] == [64, 12, 466, 252]
    assert data["range"] == pytest.approx([1.0, 3.0, 0.0, 1.04])  # 5 % of 0.2 to 1 above


def test_the_line_lies_where_its_numbers_say(methods):
    figure = plot.draw(AXES, methods, lambda run: by_round(run, "test_accuracy"))
    begin = re.search(r'class="line c0 d0" data-m="0" d="M([\d.]+) ([\d.]+)', figure)
    assert begin is not None
    assert float(begin[1]) == 64.0
    assert float(begin[2]) == pytest.approx(252 - 240 * 0.3 / 1.04, abs=0.05)


def test_a_line_is_dotted_where_a_seed_is_missing(make_run, tmp_path: Path):
    make_run("0", seed=0, accuracy=(0.2, 0.4, 0.6, 0.8))
    make_run("1", seed=1, accuracy=(0.2, 0.4), finished=False)
    figure = plot.draw(AXES, group(collect([tmp_path])[0]), lambda run: by_round(run, "test_accuracy"))
    whole, partly = re.findall(r'<path class="line c0 d0( partly)?" data-m="0" d="M([\d.]+)', figure)
    assert whole == ("", "64")
    assert partly == (" partly", "198")  # from round 2, a third of 64 to 466


def test_thinning_keeps_both_ends():
    x = np.arange(1.0, 1001.0)
    thin = plot.thinned(Band(x, x, x, x, x > 0), 5)
    assert thin.x.tolist() == [1.0, 251.0, 501.0, 750.0, 1000.0]
    assert plot.thinned(thin, 5) is thin


def test_a_loss_that_explodes_is_drawn_by_its_logarithm(make_run, tmp_path: Path):
    make_run("0", metrics={"test_loss": [2.0, 20.0, 2e5, 2e6]})
    axes = plot.Axes(title="Test loss", horizontal="Round", vertical="Loss", log=True)
    figure = plot.draw(axes, group(collect([tmp_path])[0]), lambda run: by_round(run, "test_loss"))
    assert numbers(figure)["log"] is True
    assert "10⁶" in figure


def test_nothing_to_draw_is_no_figure(methods):
    assert plot.draw(AXES, methods, lambda run: by_round(run, "validation_accuracy")) == ""
