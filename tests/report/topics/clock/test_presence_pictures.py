"""Who was there when, drawn from tables written down by the test."""

from typing import Any

import pytest

from fedexp.report.draw import style
from fedexp.report.read.methods import group_runs
from fedexp.report.read.runs import collect_runs
from fedexp.report.topics.clock import presence

METRICS = {
    "sim_s": [2.0, 5.0, 6.0, 10.0],
    "availability.present": [1, 2, 4, 3],
    "availability.waited_s": [0.5, 0, 0, 1],
}
SPANS = "client,from_s,to_s,present\n0,0.0,4.0,1\n0,4.0,8.0,0\n0,8.0,10.0,1\n3,0.0,9.0,0\n3,9.0,10.0,1\n"


def methods_of(folder):
    return group_runs(collect_runs([folder])[0])


def test_the_share_at_the_beginning_of_each_step(make_run, tmp_path):
    make_run("0", metrics=METRICS)
    seconds, share = presence.share_over_time(methods_of(tmp_path)[0].runs[0])
    assert (seconds.tolist(), share.tolist()) == ([0.5, 2.0, 5.0, 7.0], [0.25, 0.5, 1.0, 0.75])


@style.style()
def test_a_bar_where_a_client_is_there(make_run, tmp_path):
    (make_run("0", metrics=METRICS) / "presence.csv").write_text(SPANS)
    part = presence.build_section(methods_of(tmp_path))
    assert part is not None
    share, strips = part.pictures
    assert [method.label for method in share.methods] == ["random"]
    assert strips.data.text == "2 clients over 10 s are there for 0.10 to 0.60 of the time."
    assert strips.data.table.rows == [["0", "1", "0.600"], ["3", "1", "0.100"]]
    assert strips.caption == "2 of 4 clients, chosen evenly. A client is there where it has a bar."
    axes: Any = strips.figure.axes[0]
    bars = [(bar.get_x(), bar.get_width(), bar.get_y() + bar.get_height() / 2) for bar in axes.patches]
    assert bars == [pytest.approx(bar) for bar in ((0, 4, 0), (8, 2, 0), (9, 1, 1))]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0", "3"]


@style.style()
def test_methods_that_meet_the_same_absences_share_a_picture(make_run, tmp_path):
    longer = {**METRICS, "sim_s": [2.0, 5.0, 6.0, 20.0]}
    away = {"availability": {"share": 0.5}}
    for name, metrics, keys in (("0", METRICS, away), ("1", longer, away), ("2", METRICS, {"availability.share": 0.9})):
        choices = {"selector": f"s{name}", "availability": "markov"}
        (make_run(name, metrics=metrics, choices=choices, keys=keys) / "presence.csv").write_text(SPANS)
    laws = presence.longest_by_law(methods_of(tmp_path))
    assert [(law, run.folder.name) for law, run in laws] == [("markov", "1"), ("markov", "2")]


@style.style()
def test_an_unfinished_run_has_no_bars_and_runs_in_which_all_stay_no_section(make_run, tmp_path):
    make_run("0", metrics=METRICS)
    make_run("1", choices={"selector": "all"})
    moving, staying = methods_of(tmp_path)
    part = presence.build_section([moving, staying])
    assert part is not None
    assert len(part.pictures) == 1
    assert presence.build_section([staying]) is None


ODD = "spans must begin at 0 or later and before they end, in numbers"


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ("0,0.0,inf,1\n", ODD),
        ("0,0.0,,1\n", ODD),
        ("0,-1.0,2.0,1\n", ODD),
        ("0,4.0,4.0,1\n", ODD),
        ("".join(f"{client},0.0,1.0,1\n" for client in range(21)), "at most 1,040 lines of 20 clients, got 21"),
        ("".join(f"0,{s}.0,{s + 1}.0,1\n" for s in range(1041)), "at most 1,040 lines of 20 clients, got 1,041"),
    ],
)
@style.style()
def test_a_table_that_no_run_writes_is_left_out_in_a_sentence(make_run, tmp_path, lines, fault):
    (make_run("0", metrics=METRICS) / "presence.csv").write_text(f"client,from_s,to_s,present\n{lines}")
    methods = methods_of(tmp_path)
    part = presence.build_section(methods)
    assert part is not None
    assert [picture.name for picture in part.pictures] == ["presence"]
    assert part.note.count("presence.csv` is left out: ") == 1
    assert part.note.endswith(f"{fault}.")
    assert presence.read_spans(methods[0].runs[0])[0].shape == (0, 4)


@style.style()
def test_the_longest_table_that_a_run_writes_is_drawn(make_run, tmp_path):
    lines = "".join(f"{client},{s}.0,{s + 1}.0,1\n" for client in range(20) for s in range(52))
    (make_run("0", metrics=METRICS) / "presence.csv").write_text(f"client,from_s,to_s,present\n{lines}")
    part = presence.build_section(methods_of(tmp_path))
    assert part is not None
    assert [picture.name for picture in part.pictures] == ["presence", "presence_0"]
    assert "left out" not in part.note
