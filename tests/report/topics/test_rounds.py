"""Seconds of stages, of rounds, and how often Shapley values converged."""

import numpy as np
import pytest

from fedexp.report.draw import bands, style
from fedexp.report.read.methods import group_runs
from fedexp.report.read.runs import collect_runs, read
from fedexp.report.topics import rounds

LINES = bands.PlotSpec(name="x", title="Seconds", vertical="Seconds")


def methods_of(folder):
    return group_runs(collect_runs([folder])[0])


def test_the_seconds_of_stages_and_what_is_beyond_them(make_run, tmp_path):
    stages = {"select_s": 0.1, "train_s": 0.2, "aggregate_s": 0.05, "evaluate_s": [0.1, None, 0.1, None]}
    make_run("0", metrics=stages)  # host_s grows by 0.5 a round
    assert rounds.stage_profile(methods_of(tmp_path)[0]) == pytest.approx([0.1, 0.2, 0.05, 0.05, 0.1])


@style.style()
def test_the_table_of_stages_ends_with_the_seconds_of_the_results(make_run, tmp_path):
    make_run("0", metrics={"train_s": 0.25, "evaluate_s": 0.5})  # together more than the 0.5 of the host
    part = rounds.build_section(methods_of(tmp_path))
    assert part is not None
    table = part.pictures[0].data.table
    assert [name.split()[-1] for name in table.headings[1:]] == ["s/round"] * 6
    assert (table.headings[-1], table.rows[0][-1]) == ("host s/round", "0.5")


def test_without_stages_there_is_no_profile(make_run, tmp_path):
    make_run("0")
    assert rounds.stage_profile(methods_of(tmp_path)[0]) is None


def test_seconds_of_a_round_are_differences(make_run):
    run = read(make_run("0", metrics={"sim_s": [1.0, 3.0, 3.5, 10.0]}))
    assert run is not None
    numbers, spent = rounds.seconds_by_round("sim_s")(run)
    assert numbers.tolist() == [1, 2, 3, 4]
    assert spent.tolist() == [1, 2, 0.5, 6.5]


@style.style()
def test_a_round_that_did_not_converge_has_a_cross(make_run, tmp_path):
    make_run("0", metrics={"selector.converged": [1, 0, 1, 1]})
    picture = rounds.seconds_picture(LINES, methods_of(tmp_path), "host_s")
    assert picture is not None
    cross = picture.figure.axes[0].lines[-1]
    assert (cross.get_marker(), np.asarray(cross.get_xdata()).tolist()) == ("x", [2.0])


def test_the_share_of_converged_rounds_leaves_out_rounds_without_an_estimate(make_run):
    some = read(make_run("0", metrics={"selector.converged": [None, 1, 0, 1]}))
    none = read(make_run("1"))
    assert some is not None
    assert none is not None
    assert rounds.converged_share(some) == pytest.approx(2 / 3)
    assert rounds.converged_share(none) is None
