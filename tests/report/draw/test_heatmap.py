"""Heat maps: the letters in a cell can be read, on the page by day and by night."""

import re
from importlib.resources import files

import numpy as np
import pytest
from matplotlib.colors import to_rgb, to_rgba

from fedexp.report.draw import heatmap, style


def luminance(color: tuple[float, ...]) -> float:
    """Relative luminance of WCAG 2."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in color[:3]]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_the_contrast_of_black_on_white_is_21():
    assert contrast((0, 0, 0), (1, 1, 1)) == pytest.approx(21)
    assert contrast(to_rgb("#777777"), (1, 1, 1)) == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("night", [False, True])
@style.style()
def test_letters_stand_out_from_the_strongest_cell(night):
    sheet = files("fedexp.report.html").joinpath("page.css").read_text(encoding="utf-8")
    inks = {name: pair[night] for name, *pair in re.findall(r"--(ink|card): light-dark\((#\w+), (#\w+)\)", sheet)}
    figure, axes = style.canvas("heat")
    heatmap.draw_cells(figure, axes, np.array([[0.0, 1.0]]), "share")
    red, green, blue, strength = axes.images[0].cmap(1.0)
    cell = tuple(
        strength * part + (1 - strength) * ground
        for part, ground in zip((red, green, blue), to_rgba(inks["card"]), strict=False)
    )
    assert contrast(cell, to_rgb(inks["ink"])) >= 4.5
    assert contrast(cell, to_rgb(inks["card"])) >= 2, "and the cell from the ground"
