"""Epsilon beside accuracy: one axis where ledgers agree, a second panel where they do not, a picture for each key."""

import json

import numpy as np
import pandas as pd
import pytest

from fedexp.report.draw import style
from fedexp.report.read import epsilon, methods, one_at_a_time, runs
from fedexp.report.topics import curves, privacy

LEDGER = "privacy.epsilon_pld"
SPENT = (0.5, 1.0, 1.5, 2.0)
PRIVATE = {"privacy.delta": 1e-5, "local.lr": 1.0, "privacy.clip": 1.0}


@pytest.fixture
def point(make_run):
    """Writes a run with a ledger: `spent` by round, dotted keys in words."""

    def made(name, spent=SPENT, **keys):
        told = {key.replace("__", "."): value for key, value in keys.items()}
        return make_run(name, metrics={LEDGER: spent}, choices={"privacy": "dp_sgd"}, keys={**PRIVATE, **told})

    return made


def grouped(folder):
    return methods.group_runs(runs.collect_runs([folder])[0])


@style.style()
def panels(folder):
    drawn = privacy.accuracy_figure(grouped(folder))
    assert drawn is not None
    return drawn[0].axes


def test_the_last_epsilon_and_round_ones_before_it():
    rounds, spent = np.array([1.0, 2.0, 10.0]), np.array([1.0, 2.0, 9.9])
    assert epsilon.epsilon_ticks(rounds, spent, (0.0, 10.0)) == (
        [2.0, pytest.approx(2 + 8 * 2 / 7.9), pytest.approx(2 + 8 * 4 / 7.9), pytest.approx(2 + 8 * 6 / 7.9), 10.0],
        [2.0, 4.0, 6.0, 8.0, 9.9],
    )
    assert epsilon.epsilon_ticks(np.array([1.0]), np.array([0.7]), (0.5, 1.5)) == ([1.0], [0.7])


def test_ledgers_that_agree_stand_above_the_rounds(point, make_run, tmp_path):
    point("0")
    point("1", local__lr=2.0)
    make_run("2")
    (axes,) = panels(tmp_path)
    (above,) = axes.child_axes
    assert above.get_xlabel() == "ε at δ = 1e-05 (PLD)"
    assert [text.get_text() for text in above.get_xticklabels()][-1] == "2"
    assert len(axes.lines) == 3 + 3, "each has a line that leads to its name"


def test_ledgers_that_differ_have_a_panel_of_their_own(point, make_run, tmp_path):
    point("0")
    point("1", (1.0, 2.0, 3.0, 4.0), privacy__delta=1e-6)
    make_run("2", accuracy=(0.1, 0.2, 0.3, 0.97))
    left, right = panels(tmp_path)
    assert left.child_axes == []
    assert right.get_xlabel() == "ε (PLD)", "two deltas cannot be one label"
    assert [list(np.asarray(line.get_xdata())) for line in right.lines[:2]] == [list(SPENT), [1.0, 2.0, 3.0, 4.0]]
    assert list(np.asarray(right.lines[2].get_ydata())) == [0.97, 0.97], "what has no epsilon lies across"


def test_without_a_ledger_there_is_nothing_to_show(make_run, tmp_path):
    make_run("0")
    make_run("1", metrics={LEDGER: np.inf}, keys=PRIVATE)
    assert privacy.accuracy_figure(grouped(tmp_path)) is None


def around_a_centre(point):
    point("0")
    point("1", local__lr=0.5)
    point("2", local__lr=10.0)
    point("3", (1.0, 2.0, 3.0, 4.0), privacy__clip=0.1)


def test_a_family_for_each_key_around_the_centre(point, tmp_path):
    around_a_centre(point)
    by_rate, by_clip = one_at_a_time.one_key_variations(grouped(tmp_path))
    assert (by_rate.key, [one.label for one in by_rate.methods]) == ("local.lr", ["lr=0.5", "lr=1 (centre)", "lr=10"])
    assert [one.position for one in by_rate.methods] == [0, 1, 2]
    assert (by_clip.key, [one.label for one in by_clip.methods]) == ("privacy.clip", ["clip=0.1", "clip=1 (centre)"])


def test_a_grid_has_no_centre(point, tmp_path):
    around_a_centre(point)
    point("4", local__lr=0.5, privacy__clip=0.1)
    point("5", local__lr=10.0, privacy__clip=0.1)
    assert one_at_a_time.one_key_variations(grouped(tmp_path)) == []


@style.style()
def test_one_key_alone_is_one_picture(point, tmp_path):
    point("0")
    point("1", local__lr=0.5)
    assert one_at_a_time.one_key_variations(grouped(tmp_path)) == []
    assert [one.name for one in privacy.accuracy_pictures(grouped(tmp_path))] == ["epsilon"]


def test_a_sweep_ends_with_a_picture_for_each_key(point, tmp_path):
    around_a_centre(point)
    written = privacy.conclude(tmp_path)
    assert [path.name for path in written] == ["epsilon_local_lr.png", "epsilon_privacy_clip.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)
    assert all((tmp_path / name / LEDGER).parent.exists() for name in "0123")


def test_a_sweep_without_a_ledger_ends_without(make_run, tmp_path):
    make_run("0")
    assert privacy.conclude(tmp_path) == []


@pytest.mark.parametrize("spent", [(0.5, 1.0, 1.5), (np.inf,) * 3, (np.nan, np.nan, 1.0), (0.0, 0.0, 0.0)])
def test_the_curves_of_a_run_bear_its_ledger(tmp_path, spent):
    table = pd.DataFrame({"round": [1, 2, 3], "test_accuracy": [0.1, 0.2, 0.3], "test_loss": 1.0, LEDGER: spent})
    curves.draw(tmp_path / "curves.png", table)
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


@style.style()
def test_the_ledger_of_a_private_run(make_run, tmp_path):
    folder = make_run("0", metrics={"privacy.epsilon_pld": [0.5, 1.0, 1.5, 2.0]}, keys={"privacy.delta": 1e-5})
    told = {"privacy": {"epsilon_pld": 2.0, "delta": 1e-5, "promise": "a promise"}}
    (folder / "summary.json").write_text(json.dumps(told))
    make_run("1", choices={"selector": "all"})
    part = privacy.build_section(grouped(tmp_path))
    assert part is not None
    spent, gained = part.pictures
    assert spent.figure.axes[0].get_ylabel() == "ε at δ = 1e-05 (PLD)"
    assert [len(picture.methods) for picture in (spent, gained)] == [1, 2], "who is not private is beside, for accuracy"
    (_, ledger), (_, promises) = part.tables
    assert (ledger.headings, list(ledger.rows)) == (("method", "epsilon (PLD)", "delta"), [("random", "2", "1e-05")])
    assert promises.rows == [("a promise", "random")]


def test_without_a_ledger_there_is_no_part(make_run, tmp_path):
    make_run("0")
    assert privacy.build_section(grouped(tmp_path)) is None
