"""A drawing of the page: small, in the page's colours, its methods marked, and no word of a folder more than a word."""

import re
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from fedexp.report.draw import band, bands, style
from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.picture_data import PictureData
from fedexp.report.draw.section import Picture
from fedexp.report.html.drawing import svg
from fedexp.report.read.methods import Method, group_runs
from fedexp.report.read.runs import collect_runs

LINES = bands.PlotSpec(name="learning", title="Test accuracy", vertical="Accuracy")
NO_DATA = PictureData("", Grid((), ()))
EVIL = ["</svg><script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "$x_1$ costs $5", "a\x01b\n学"]


@pytest.fixture
def method(make_run, tmp_path) -> Method:
    make_run("0", seed=0)
    make_run("1", seed=1, accuracy=(0.5, 0.6, 0.7, 0.9))
    return group_runs(collect_runs([tmp_path])[0])[0]


def drawn(*methods: Method) -> Picture:
    picture = bands.picture(LINES, methods, band.by_round("test_accuracy"))
    assert picture is not None
    return picture


def nodes(text: str, path: str) -> list[ElementTree.Element]:
    return ElementTree.fromstring(text).findall(path)


@style.style()
def test_a_method_is_a_group_with_its_number_and_its_name(method):
    text = svg(drawn(method, replace(method, position=3, label="other")))
    marked = nodes(text, ".//g[@data-m]")
    numbers = [node.get("data-m") for node in marked]
    assert numbers == ["0", "3"] * 4  # the bands, the lines, then lines and names at their ends
    assert {node.findtext("title") for node in marked if node.get("data-m") == "3"} == {"other"}


@style.style()
def test_only_methods_of_the_picture_are_marked(method):
    assert "data-m" not in svg(replace(drawn(method), methods=()))


@style.style()
@pytest.mark.parametrize("label", EVIL)
def test_a_word_of_a_folder_stays_a_word(method, label):
    named = replace(method, label=label)
    picture = drawn(named)
    style.name_rows(picture.figure.axes[0], [label])
    text = svg(replace(picture, title=label, caption=label))
    assert re.findall("<(?:script|img|/svg)", text) == ["</svg"]
    said = "".join(node.text or "" for node in nodes(text, ".//text"))
    assert label.partition("\n")[0].replace("\x01", "")[:30] in said, "and is drawn as it was written"


@style.style()
def test_colours_are_those_of_the_page(method):
    text = svg(drawn(method))
    assert "stroke: var(--c0)" in text
    assert {"fill: var(--ink)", "fill: var(--quiet)"} <= set(re.findall(r"fill: var\(--\w+\)", text))
    assert not re.findall("#[0-9a-f]{6};?", text.replace("url(#", ""))


@style.style()
def test_the_same_runs_give_the_same_bytes_and_two_drawings_no_common_id(method):
    one, again, other = svg(drawn(method)), svg(drawn(method)), svg(replace(drawn(method), name="else"))
    assert one == again
    ids = re.findall(r'id="([^"]+)"', one + other)
    assert len(ids) == len(set(ids)) > 2
    assert set(re.findall(r"(?:href=\"|url\()#(\w+)", one + other)) == set(ids)


@style.style()
def test_a_line_of_many_points_has_few_characters():
    figure, axes = style.canvas("T")
    axes.plot(np.arange(300), np.random.default_rng(0).random(300))
    assert len(svg(Picture(name="x", title="T", figure=figure, data=NO_DATA))) < 300 * 14 + 8000


@style.style()
def test_it_has_a_name_for_who_cannot_see_it(method):
    root = ElementTree.fromstring(svg(replace(drawn(method), caption="Of <all> seeds")))
    course = "Accuracy. random from 0.45 at round 1 to 0.9 at round 4."
    assert (root.get("role"), root.get("aria-label")) == ("img", f"Test accuracy. Of <all> seeds {course}")


@style.style()
def test_the_values_stand_under_the_pointer(method):
    strips = nodes(svg(drawn(method)), "rect[@class='tip']")
    assert [strip.findtext("title") for strip in strips] == [
        f"Round {number}\nrandom: {value}"
        for number, value in enumerate(("0.45 (0.4 to 0.5)", "0.6", "0.75 (0.7 to 0.8)", "0.9"), start=1)
    ]
    edges = [(float(strip.get("x", 0)), float(strip.get("width", 0))) for strip in strips]
    for (left, width), (after, _) in pairwise(edges):
        assert left + width == pytest.approx(after, abs=0.2), "no gap and no overlap"
