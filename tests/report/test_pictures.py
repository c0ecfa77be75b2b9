import numpy as np
import pytest

from fedexp.report import bands, convergence, methods, participants, pictures, runs, seconds, selections

ALWAYS = {"learning", "selections", "seconds_host", "participants", "federation_1"}


def grouped(folder):
    return methods.group(runs.collect([folder])[0])


def test_a_band_by_hand():
    short, long = (np.array([1.0, 3.0]), np.array([0.0, 2.0])), (np.array([1.0, 2.0, 4.0]), np.array([2.0, 2.0, 6.0]))
    band = bands.band([short, long])
    assert band is not None
    assert band.x.tolist() == [1, 2, 3, 4]
    assert band.mean.tolist() == [1, 1.5, 3, 6]
    assert band.low.tolist() == [0, 1, 2, 6]
    assert band.high.tolist() == [2, 2, 4, 6]
    assert band.complete.tolist() == [True, True, True, False]
    assert bands.band([(np.zeros(0), np.zeros(0))]) is None


def test_a_band_begins_where_the_last_of_its_runs_does():
    early, late = (np.array([1.0, 4.0]), np.array([1.0, 4.0])), (np.array([2.0, 3.0]), np.array([0.0, 0.0]))
    band = bands.band([early, late])
    assert band is not None
    assert band.x.tolist() == [2, 3, 4]
    assert band.mean.tolist() == [1, 1.5, 4]


def test_everything_is_drawn_where_everything_is_there(make_run, tmp_path):
    told = {"sim_s": [1.0, 2.0, 4.0, 8.0], "selector.method": "gtg", "selector.converged": [1, 0, 1, 1]}
    make_run("0", seed=0, metrics=told)
    make_run("1", seed=1, metrics=told, finished=False)
    make_run("2", choices={"selector": "a$b_c"})
    drawn = pictures.draw(tmp_path / "out", grouped(tmp_path))
    assert {one.name for one in drawn} == ALWAYS | {"learning_time", "seconds_simulated", "convergence"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == {f"{one.name}.png" for one in drawn}
    assert drawn[-1].caption.endswith("seeds 0, 1 of every method.")


def test_an_old_folder_shows_what_it_has(make_run, tmp_path):
    folder = make_run("0", metrics={"participants": ..., "host_s": ..., "sim_s": ..., "test_loss": ...})
    (folder / "clients.csv").unlink()
    (folder / "federation.csv").unlink()
    assert [one.name for one in pictures.draw(tmp_path / "out", grouped(tmp_path))] == ["learning"]


def test_a_run_without_any_evaluation_has_no_learning_curve(make_run, tmp_path):
    make_run("0", accuracy=(None, None), metrics={"test_loss": None})
    assert {one.name for one in pictures.draw(tmp_path / "out", grouped(tmp_path))} == ALWAYS - {"learning"}


def test_a_single_round_is_drawn(make_run, tmp_path):
    make_run("0", accuracy=(0.3,))
    assert {one.name for one in pictures.draw(tmp_path / "out", grouped(tmp_path))} == ALWAYS


def test_each_different_federation_is_drawn_once(make_run, tmp_path):
    folders = [make_run(str(number), seed=number) for number in range(3)]
    (folders[-1] / "federation.csv").write_text("client,examples,cat,dog\n0,1,1,0\n")
    drawn = [one for one in pictures.draw(tmp_path / "out", grouped(tmp_path)) if one.title == "Federations"]
    assert [one.caption.partition(": ")[2] for one in drawn] == [
        "seeds 0, 1 of every method.",
        "seed 2 of every method.",
    ]


def test_the_density_of_selections():
    assert selections.density(np.array([3, 3, 3])) is None
    assert selections.density(np.array([3])) is None
    curve = selections.density(np.array([20, 22, 24]))
    assert curve is not None
    x, density = curve
    assert x[np.argmax(density)] == pytest.approx(22, abs=0.1)
    assert np.trapezoid(density, x) == pytest.approx(1, abs=0.01)
    cut = selections.density(np.array([0, 1, 5]))
    assert cut is not None
    assert cut[0][0] == 0


def test_seconds_of_a_round_are_differences(make_run):
    run = runs.read(make_run("0", metrics={"sim_s": [1.0, 3.0, 3.5, 10.0]}))
    assert run is not None
    rounds, spent = seconds.each(run, "sim_s")
    assert rounds.tolist() == [1, 2, 3, 4]
    assert spent.tolist() == [1, 2, 0.5, 6.5]


def test_the_share_of_converged_rounds_leaves_out_rounds_without_an_estimate(make_run):
    some = runs.read(make_run("0", metrics={"selector.converged": [None, 1, 0, 1]}))
    none = runs.read(make_run("1"))
    assert some is not None
    assert none is not None
    assert convergence.share(some) == pytest.approx(2 / 3)
    assert convergence.share(none) is None


def test_lines_in_the_same_place_are_found(make_run, tmp_path):
    for number, asked in enumerate((2, 3, 2)):
        make_run(str(number), choices={"selector": f"s{number}"}, metrics={"participants": asked})
    found = [(one, bands.of(one, lambda run: (run.rounds, run.column("participants")))) for one in grouped(tmp_path)]
    same = participants.coinciding([(method, band) for method, band in found if band is not None])
    assert [[method.label for method, _ in group] for group in same] == [["s0", "s2"], ["s1"]]
