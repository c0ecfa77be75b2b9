"""The confusion matrix in a report."""

from pathlib import Path

import numpy as np
import pytest
from run_folders import MakeRun

from fedexp.core.errors import ConfigError
from fedexp.report.read import methods, runs
from fedexp.report.topics import confusion_matrix

TABLE = "true class,cat,dog\ncat,7,3\ndog,0,0\n"


def section_of(folder: Path) -> confusion_matrix.Section | None:
    collected, _ = runs.collect_runs([folder])
    return confusion_matrix.build_section(methods.group_runs(collected))


def test_a_method_with_a_table_has_a_picture(make_run: MakeRun):
    folder = make_run("run")
    assert section_of(folder) is None
    (folder / "confusion_matrix.csv").write_text(TABLE)
    part = section_of(folder)
    assert part is not None
    (picture,) = part.pictures
    assert picture.data.text == "7 of 10 answers are right."
    assert [list(row) for row in picture.data.table.rows] == [["cat", "7", "3"], ["dog", "0", "0"]]
    axes = picture.figure.axes[0]
    assert [text.get_text() for text in axes.texts] == ["7", "3", "0", "0"]
    shares = axes.images[0].get_array()
    assert shares is not None
    assert shares[0].tolist() == [0.7, 0.3]
    assert np.ma.getmaskarray(shares)[1].all(), "a class without examples has no shares"


def test_of_many_classes_there_are_no_numbers(make_run: MakeRun):
    folder, names = make_run("run"), [f"class {number}" for number in range(50)]
    lines = [f"{name},{','.join('1' * 50)}" for name in names]
    (folder / "confusion_matrix.csv").write_text("\n".join([f"true class,{','.join(names)}", *lines]) + "\n")
    part = section_of(folder)
    assert part is not None
    axes = part.pictures[0].figure.axes[0]
    assert len(axes.texts) == 0
    assert len(axes.get_yticks()) == 25


@pytest.mark.parametrize(
    "table", ["true class,cat,dog\ncat,7,3\n", "true class,cat\ncat,many\n", "true class,cat\ncat,-1\n"]
)
def test_a_damaged_table_is_one_line(make_run: MakeRun, table: str):
    folder = make_run("run")
    (folder / "confusion_matrix.csv").write_text(table)
    with pytest.raises(
        ConfigError, match=r"confusion_matrix\.csv must have whole numbers from 0 on, as many rows as columns"
    ):
        section_of(folder)
