import pandas as pd
import pytest

from fedexp.core.errors import ConfigError
from fedexp.report.draw.statistic_text import cell_text
from fedexp.report.read import methods, runs
from fedexp.report.read.measures import Statistic, statistic
from fedexp.report.topics import tables


def made(folder, view=tables.ALL):
    return tables.make_tables(methods.group_runs(runs.collect_runs([folder])[0]), view)


def row(table, label):
    cells = {}
    for _, grid in table.grids():
        cells |= next(dict(zip(grid.headings, line, strict=True)) for line in grid.rows if line[0] == label)
    return cells


def bold(grid):
    return {(grid.rows[row][0], grid.headings[column]) for row, column in grid.bold}


def test_mean_and_sample_deviation_over_the_runs_that_have_the_number():
    assert statistic([1.0, 3.0, None]) == Statistic(2.0, 2**0.5, 2, 3)
    assert statistic([1.0]) == Statistic(1.0, None, 1, 1)
    assert statistic([1.0, float("inf")]) == Statistic(float("inf"), None, 2, 2)
    assert statistic([None]) == Statistic(None, None, 0, 1)


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [
        (Statistic(0.9, 0.01, 3, 3), 4, "0.9000 ± 0.0100"),
        (Statistic(0.9, None, 1, 1), 4, "0.9000"),
        (Statistic(12.0, None, 1, 1), 1, "12"),
        (Statistic(12.0, 1.41, 2, 2), 1, "12.0 ± 1.4"),
        (Statistic(12.5, 0.71, 2, 3), 1, "12.5 ± 0.7 (2/3)"),
        (Statistic(None, None, 0, 3), 1, "- (0/3)"),
        (Statistic(12345.67, 2.0, 2, 2), None, "12,345.7 ± 2.0"),
        (Statistic(0.012345, None, 1, 1), None, "0.01235"),
        (Statistic(0.0, None, 1, 1), None, "0.0"),
    ],
)
def test_cells(value, places, text):
    assert cell_text(value, places) == text


def test_two_seeds_by_hand(make_run, tmp_path):
    make_run("0", seed=0, accuracy=(0.4, 0.6, 0.8, 0.9))
    make_run("1", seed=1, accuracy=(0.5, 0.6, 0.7, 0.7))
    (table,) = made(tmp_path)
    # losses 4, 2, 4/3, 1: (4+2)/2 + (2+4/3)/2 + (4/3+1)/2 = 5.8333 in both; 0.8 is reached by the first seed alone
    assert row(table, "random") == {
        "method": "random",
        "seeds": "2",
        "final accuracy": "0.8000 ± 0.1414",
        "best accuracy": "0.8000 ± 0.1414",
        "loss AUC": "5.833 ± 0.000",
        "RoA@0.5": "1.5 ± 0.7",
        "RoA@0.8": "3 (1/2)",
        "ToA@0.5 host s": "0.7500 ± 0.3536",
        "ToA@0.8 host s": "1.500 (1/2)",
        "selections": "8 ± 0",
        "rounds": "4 ± 0",
        "host s/round": "0.5000 ± 0.0000",
    }


def test_the_frame_has_every_number_in_a_column_of_its_own(make_run, tmp_path):
    make_run("0", seed=0)
    make_run("1", seed=1, accuracy=(0.5, 0.6, 0.7))
    make_run("2", choices={"selector": "all"})
    frame = made(tmp_path)[0].frame().set_index("method")
    assert list(frame.columns[:5]) == ["runs", "unfinished", "final accuracy mean", "final accuracy std",
                                       "final accuracy count"]  # fmt: skip
    assert frame.loc["random", "final accuracy mean"] == pytest.approx(0.8)
    assert frame.loc["random", "RoA@0.8 count"] == 1
    assert frame.loc["random", "RoA@0.8 mean"] == 3
    assert pd.isna(frame.loc["all", "final accuracy std"])
    assert not [name for name in frame if "0.99" in name]  # reached by nobody


def test_the_simulated_clock_has_a_table_of_its_own(make_run, tmp_path):
    make_run("0", metrics={"sim_s": [10.0, 30.0, 60.0, 100.0], "participants": [1, 2, 3, 4]})
    host, simulated = made(tmp_path)
    assert not [name for name in host.quantities if name.startswith("ToA")]
    assert row(simulated, "random") == {
        "method": "random",
        "seeds": "1",
        "sim s/round": "25.00",
        "participants/round": "2.5",
        "rounds": "4",
        "selections": "10",
        "final accuracy": "0.9000",
        "ToA@0.5 sim s": "30.00",
        "ToA@0.8 sim s": "60.00",
    }


def test_an_unfinished_run_counts_as_far_as_it_is_where_none_is_finished(make_run, tmp_path):
    make_run("0", seed=0, finished=False)
    make_run("1", seed=1, accuracy=(0.4, 0.5), finished=False)
    cells = row(made(tmp_path)[0], "random")
    assert cells["seeds"] == "2 (2 unfinished)"
    assert cells["rounds"] == "3.0 ± 1.4"
    assert cells["final accuracy"] == "0.7000 ± 0.2828"


def test_an_unfinished_run_is_left_out_beside_finished_ones(make_run, tmp_path):
    make_run("0", seed=0)
    make_run("1", seed=1, accuracy=(0.4, 0.5), finished=False)
    make_run("2", seed=2)
    cells = row(made(tmp_path)[0], "random")
    assert cells["seeds"] == "2 (1 unfinished)"
    assert cells["final accuracy"] == "0.9000 ± 0.0000"


def test_an_old_folder_has_fewer_columns(make_run, tmp_path):
    absent = dict.fromkeys(("participants", "host_s", "sim_s", "test_loss"), ...)
    make_run("0", metrics=absent)
    (table,) = made(tmp_path)
    assert list(row(table, "random")) == ["method", "seeds", "final accuracy", "best accuracy", "rounds", "RoA@0.5",
                                          "RoA@0.8"]  # fmt: skip


def test_rounds_without_an_evaluation(make_run, tmp_path):
    make_run("0", accuracy=(None, 0.6, None, 0.9))
    cells = row(made(tmp_path)[0], "random")
    assert (cells["RoA@0.5"], cells["RoA@0.8"]) == ("2", "4")


def test_the_best_mean_is_bold_where_all_seeds_have_it(make_run, tmp_path):
    for seed, (slow, fast) in enumerate(((0.4, 0.6), (0.7, 0.9))):
        make_run(f"a{seed}", seed=seed, accuracy=(0.3, slow))
        make_run(f"b{seed}", seed=seed, accuracy=(fast, 0.1), choices={"selector": "all"})
    results, targets, _ = (grid for _, grid in made(tmp_path)[0].grids())
    assert bold(results) == {("random", "final accuracy"), ("all", "best accuracy")}
    assert bold(targets) == {("all", "RoA@0.5")}, (
        "one seed of random never got there, and 0.8 was reached by one of all"
    )


def test_counts_that_are_the_same_everywhere_are_no_column(make_run, tmp_path):
    make_run("0")
    make_run("1", choices={"selector": "all"})
    (_, results), *_ = made(tmp_path)[0].grids()
    assert list(results.headings) == ["method", "seeds", "final accuracy", "best accuracy", "loss AUC", "host s/round"]


def test_chosen_columns_and_percent(make_run, tmp_path):
    make_run("0", seed=0, accuracy=(0.5, 0.8))
    make_run("1", seed=1, accuracy=(0.5, 0.9))
    (table,) = made(tmp_path, tables.View(columns=("rounds", "final accuracy"), percent=True))
    ((_, grid),) = table.grids()
    assert grid.headings == ("method", "seeds", "rounds", "final accuracy %")
    assert grid.rows == [["random", "2", "2 ± 0", "85.00 ± 7.07"]]
    assert table.frame()["final accuracy mean"].tolist() == [pytest.approx(0.85)], "files keep the shares"
    (with_intervals,) = made(tmp_path, tables.View(columns=("final accuracy",), interval=True))
    ((_, grid),) = with_intervals.grids()
    assert grid.rows == [["random", "2", "0.8500 ± 0.6353"]], "t(0.975; 1) = 12.706 deviations of 0.05"
    with pytest.raises(
        ConfigError, match=r"--columns: these runs have no column acuracy; did you mean best accuracy or final accuracy"
    ):
        made(tmp_path, tables.View(columns=("acuracy",)))
    with pytest.raises(
        ConfigError, match=r"--columns: these runs have no columns b, acuracy; they have final accuracy,"
    ):
        made(tmp_path, tables.View(columns=("b", "final accuracy", "acuracy")))


def test_a_metric_has_its_name_in_headings_and_its_column_in_files(make_run, tmp_path):
    make_run("0", metrics={"test_accuracy": ..., "test_auroc": [0.5, 0.6, 0.7, 0.8]})
    (table,) = made(tmp_path)
    assert table.grids()[0][1].headings[2:4] == ("final AUROC", "best AUROC")
    assert "final auroc mean" in table.frame().columns
    for name in ("final auroc", "Final AUROC"):
        (chosen,) = made(tmp_path, tables.View(columns=(name,)))
        assert chosen.grids()[0][1].headings == ("method", "seeds", "final AUROC")


def test_a_chosen_column_without_a_number_is_left_out_with_a_reason(make_run, tmp_path):
    make_run("0", accuracy=(0.9,))
    (table,) = made(tmp_path, tables.View(columns=("Loss AUC", "final accuracy")))
    assert table.view.lacking == ("loss AUC",)
    assert table.grids()[0][1].headings == ("method", "seeds", "final accuracy")
    with pytest.raises(ConfigError, match="No run has a number for the column loss AUC: it takes two evaluated rounds"):
        made(tmp_path, tables.View(columns=("loss AUC",)))


def test_at_the_clients_by_hand(make_run, tmp_path):
    """Of three clients a tenth is one; the global model's columns are shown where it differs from the clients' own."""
    own = {f"personal_{name}": [None, None, None, value] for name, value in (("accuracy", 0.75), ("worst_decile", 0.5))}
    folder = make_run("0", metrics={**own, "personal_best_decile": [None, None, None, 1.0]})
    table = next(table for table in made(tmp_path) if table.name == "at_clients")
    assert [line[2:] for _, grid in table.grids() for line in grid.rows] == [["0.7500", "0.5000", "1.0000"]]
    (folder / "client_scores.csv").write_text(
        "client,metric,examples,global,personal\n0,accuracy,4,0.5,0.5\n1,accuracy,4,0.7,1.0\n"
    )
    table = next(table for table in made(tmp_path) if table.name == "at_clients")
    assert row(table, "random")["site accuracy"] == "0.6000"
    (folder / "client_scores.csv").write_text(
        "client,metric,examples,global,personal\n0,accuracy,4,0.5,0.5\n1,accuracy,4,1.0,1.0\n2,accuracy,4,0.75,1\n"
    )
    table = next(table for table in made(tmp_path) if table.name == "at_clients")
    assert "site accuracy" not in row(table, "random")
