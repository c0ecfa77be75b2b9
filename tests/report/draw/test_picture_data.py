"""The numbers behind pictures, in words and as a table."""

import pytest

from fedexp.report.draw import band, bands, style
from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.picture_data import number_text, of_table
from fedexp.report.read.methods import group_runs
from fedexp.report.read.runs import collect_runs

LINES = bands.PlotSpec(name="x", title="Test accuracy", vertical="Accuracy", horizontal="Seconds")


@pytest.mark.parametrize(("value", "text"), [(0.123456, "0.1235"), (20.0, "20"), (12345.6, "12,346"), (-0.5, "-0.5")])
def test_four_digits(value, text):
    assert number_text(value) == text


def test_a_long_table_keeps_its_ends_and_says_what_it_leaves_out():
    data = of_table(Grid(("client", "examples"), [[str(row), "1"] for row in range(100)]), "clients")
    assert (data.table.rows[0][0], data.table.rows[-1][0]) == ("0", "99")
    assert data.note == f"{len(data.table.rows)} of 100 clients."
    assert data.text.endswith("; and 94 more.")


@style.style()
def test_curves_without_common_positions_have_a_row_a_point(make_run, tmp_path):
    for number in range(3):
        seconds = [float(number + 1 + 10 * step) for step in range(4)]
        make_run(str(number), choices={"selector": f"s{number}"}, metrics={"sim_s": seconds})
    picture = bands.picture(LINES, group_runs(collect_runs([tmp_path])[0]), band.by_column("sim_s", "test_accuracy"))
    assert picture is not None
    assert picture.data.table.headings == ("method", "Seconds", "Accuracy")
    assert picture.data.table.rows[:2] == [["s0", "1", "0.4"], ["s0", "11", "0.6"]]
    assert picture.data.text.startswith("Accuracy. s0 from 0.4 at seconds 1 to 0.9 at seconds 31; s1")
