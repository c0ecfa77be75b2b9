"""When clients trained, and how old their uploads were."""

from typing import Any

import numpy as np
import pytest

from fedexp.report.draw import style
from fedexp.report.read.methods import group_runs
from fedexp.report.read.runs import collect_runs
from fedexp.report.topics.clock import staleness

ROWS = ("1,3,0,0.5,0", "1,2,0,1.5,0", "2,0,0,2.0,1", "3,1,1.5,3.0,1", "3,3,0.5,3.25,2")
CLIENTS = "round,client,started_s,arrived_s,staleness\n" + "\n".join(ROWS) + "\n"


def methods_of(folder):
    return group_runs(collect_runs([folder])[0])


def test_shares_by_hand():
    assert staleness.shares(np.array([0.0, 0.0, 2.0, 1.0])).tolist() == [0.5, 0.25, 0.25]


@style.style()
def test_a_bar_for_each_upload_and_a_line_for_each_step(make_run, tmp_path):
    metrics = {"sim_s": [1.5, 2.0, 3.25], "pacing.staleness": [0.0, 1.0, 1.5]}
    (make_run("0", accuracy=[0.5] * 3, metrics=metrics) / "clients.csv").write_text(CLIENTS)
    make_run("1", choices={"selector": "all"})
    part = staleness.build_section(methods_of(tmp_path))
    assert part is not None
    histogram, timeline = part.pictures
    assert histogram.data.text == "random: mean 0.8, median 1, greatest 2."
    assert timeline.data.text == "5 uploads of 4 clients, on average 0.8 steps old."
    axes: Any = timeline.figure.axes[0]
    bars = [(bar.get_x(), bar.get_width(), bar.get_y() + bar.get_height() / 2) for bar in axes.patches]
    assert bars[0] == pytest.approx((0.0, 0.5, 3.0))
    assert bars[3] == pytest.approx((1.5, 1.5, 1.0))
    assert [line.get_xdata()[0] for line in axes.lines] == [1.5, 2.0, 3.25]
    strengths = [bar.get_facecolor()[3] for bar in axes.patches]
    assert strengths == pytest.approx([0.4, 0.4, 0.7, 0.7, 1.0])
    assert timeline.caption.startswith("The palest bar is a fresh upload, the strongest bar an upload of 2 steps ago;")


@style.style()
@pytest.mark.parametrize(("age", "words"), [("0", "none is stale"), ("1", "an upload of 1 step ago")])
def test_the_caption_counts_one_step_and_none(make_run, tmp_path, age: str, words: str):
    metrics = {"sim_s": [1.5], "pacing.staleness": [float(age)]}
    row = f"1,3,0,0.5,{age}\n"
    (make_run("0", accuracy=[0.5], metrics=metrics) / "clients.csv").write_text(CLIENTS.partition("\n")[0] + "\n" + row)
    part = staleness.build_section(methods_of(tmp_path))
    assert part is not None
    assert words in part.pictures[1].caption
    assert part.pictures[1].data.text == f"1 upload of 1 client, on average {age} step{'s' * (age == '0')} old."


@style.style()
def test_runs_that_wait_for_all_have_none(make_run, tmp_path):
    make_run("0", metrics={"sim_s": [1.0, 3.0, 6.0, 10.0]})
    assert staleness.build_section(methods_of(tmp_path)) is None
