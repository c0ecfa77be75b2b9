"""A section as HTML: tabs, legends, tables."""

import re

from fedexp.report.draw import style
from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.picture_data import PictureData
from fedexp.report.draw.section import Picture, Section
from fedexp.report.html.section import section_html
from fedexp.report.read.methods import Method

METHODS = [Method(position, f"<m{position}>", ()) for position in range(style.CROWD + 1)]


def picture(name: str, tab: str = "", count: int = 0, width: float = 4.4) -> Picture:
    figure, _ = style.canvas(name, size=(width, 3))
    return Picture(
        name=name, title=name, figure=figure, data=PictureData("", Grid((), ())), methods=METHODS[:count], tab=tab
    )


@style.style()
def test_pictures_of_one_tab_stand_beside_each_other():
    shown = section_html(
        Section(name="p", title="P", pictures=[picture("a", "A"), picture("b", "A"), picture("c", "B")])
    )
    first, second = re.findall(r'class="pane" data-name="(\w)">(.*?</figure>)\s*</div></div>', shown, re.DOTALL)
    assert (first[0], first[1].count("<figure"), second[0], second[1].count("<figure")) == ("A", 2, "B", 1)


@style.style()
def test_one_tab_is_none():
    assert "pane" not in section_html(Section(name="p", title="P", pictures=[picture("a", "A")]))


@style.style()
def test_a_legend_names_several_methods_but_not_a_crowd():
    buttons = [
        section_html(Section(name="p", title="P", pictures=[picture("a", count=count)])).count("<button")
        for count in (1, 2, style.CROWD, style.CROWD + 1)
    ]
    assert buttons == [0, 2, style.CROWD, 0]


@style.style()
def test_a_large_picture_has_a_row_of_its_own():
    shown = section_html(Section(name="p", title="P", pictures=[picture("a"), picture("b", width=8)]))
    assert re.findall("<figure[^>]*>", shown) == ["<figure>", '<figure class="wide">']


def test_the_caption_of_a_table_is_read_unless_the_heading_says_it():
    shown = section_html(
        Section(name="p", title="P", note="<n>", tables=[("P", Grid(["a"], [])), ("<Q>", Grid(["b"], []))])
    )
    assert re.findall("<h3>(.*?)</h3>", shown) == ["&lt;Q&gt;"]
    assert "&lt;n&gt;" in shown


def test_what_stands_in_backticks_is_code():
    section = Section(name="a", title="A", note="of `evaluation.metrics` & <b>")
    assert '<p class="note">of <code>evaluation.metrics</code> &amp; &lt;b&gt;</p>' in section_html(section)
