import pandas as pd
import pytest

from fedexp.core.errors import ConfigError
from fedexp.report.topics import sweep_table

FIXED = ("rounds=4", "dataset=digits")


def rank(folder, on: sweep_table.RankOn = "validation"):
    return sweep_table.ranking(sweep_table.read_points(folder), on)


@pytest.fixture
def point(make_run):
    """Writes a point whose validation loss falls linearly from `high` to 0 in three rounds: its area is `high`."""

    def made(number, *overrides, high=None, accuracy=0.5, **more):
        losses = {} if high is None else {"validation_loss": [high, high / 2, 0.0], "validation_accuracy": accuracy}
        tested = {"test_loss": [4.0, 2.0, 1.0]}  # (4+2)/2 + (2+1)/2 = 4.5
        return make_run(f"sweep/{number}", accuracy=(0.1, 0.2, 0.3), metrics={**tested, **losses},
                        overrides=[*overrides, *FIXED], **more)  # fmt: skip

    return made


def test_ranked_by_the_area_with_ties_in_the_order_of_the_sweep(point, tmp_path):
    for number, (lr, high) in enumerate([("0.1", 3.0), ("0.2", 2.0), ("0.3", 3.0), ("0.4", 5.0)]):
        point(number, f"local.lr={lr}", high=high)
    table = rank(tmp_path / "sweep")
    assert list(table) == ["rank", "local.lr", "seeds", "validation_loss AUC mean", "final validation accuracy"]
    assert table["rank"].tolist() == [1, 2, 2, 4]
    assert table["local.lr"].tolist() == ["0.2", "0.1", "0.3", "0.4"]
    assert table["validation_loss AUC mean"].tolist() == [2.0, 3.0, 3.0, 5.0]


@pytest.mark.parametrize(
    ("metric", "best", "areas"), [("macro_f1", "0.2", [0.9, 0.7, 0.7]), ("mae", "0.1", [0.7, 0.7, 0.9])]
)
def test_ranked_by_the_main_metric_in_its_direction(make_run, tmp_path, metric, best, areas):
    """The curves 0.1, x, 0.9 have the areas (0.1 + x) / 2 + (x + 0.9) / 2 = 0.5 + x; the losses would say otherwise."""
    for number, (lr, middle) in enumerate([("0.1", 0.2), ("0.2", 0.4), ("0.3", 0.2)]):
        curves = {"validation_loss": [float(number)] * 3, f"validation_{metric}": [0.1, middle, 0.9]}
        make_run(f"sweep/{number}", accuracy=(0.1, 0.2, 0.3), metrics=curves, overrides=[f"local.lr={lr}", *FIXED])
    table = sweep_table.ranking(sweep_table.read_points(tmp_path / "sweep"), "validation", metric)
    assert table[f"validation_{metric} AUC mean"].tolist() == pytest.approx(areas)
    assert table.loc[0, "local.lr"] == best
    assert table["rank"].tolist() == ([1, 2, 2] if metric == "macro_f1" else [1, 1, 3])
    assert sweep_table.conclude(tmp_path / "sweep", "validation", metric).splitlines()[0].split()[0] == "rank"
    assert "has a test_mae" in sweep_table.conclude(tmp_path / "sweep", "test", "mae")


def test_seeds_are_averaged(point, tmp_path):
    number = 0
    for lr, highs in (("0.1", (2.0, 4.0)), ("0.2", (1.0, 3.0))):
        for seed, high in enumerate(highs):
            point(number, f"local.lr={lr}", f"seed={seed}", high=high, seed=seed)
            number += 1
    table = rank(tmp_path / "sweep")
    assert table["local.lr"].tolist() == ["0.2", "0.1"]
    assert table["seeds"].tolist() == [2, 2]
    assert table["validation_loss AUC mean"].tolist() == [2.0, 3.0]
    assert table["validation_loss AUC std"].tolist() == pytest.approx([2**0.5] * 2)
    assert not [name for name in table if "test" in name]


def test_a_seed_that_was_run_twice_counts_once(point, tmp_path):
    """Over the areas 2 and 4 of seeds 0 and 1 the standard deviation is the root of 2; a third 2 would lower it."""
    for number, (seed, high) in enumerate([(0, None), (0, 2.0), (1, 4.0), (0, 2.0)]):
        point(number, f"seed={seed}", "local.lr=0.1", high=high, finished=high is not None)
    table = rank(tmp_path / "sweep")
    columns = ["seeds", "validation_loss AUC mean", "validation_loss AUC std"]
    assert table.loc[0, columns].tolist() == pytest.approx([2, 3.0, 2**0.5])
    lines = sweep_table.conclude(tmp_path / "sweep").splitlines()
    assert lines[-2:] == [
        "1 of 4 points have no finished run and do not count",
        "1 of 4 points repeat a seed and do not count",
    ]


def test_ranking_on_test_data_only_when_asked(point, tmp_path):
    point(0, "a=1", high=1.0)
    point(1, "a=2", high=0.5)
    table = rank(tmp_path / "sweep", on="test")
    assert table["rank"].tolist() == [1, 1]
    assert table["test_loss AUC mean"].tolist() == [4.5, 4.5]
    assert table["final test accuracy"].tolist() == [0.3, 0.3]
    assert sweep_table.conclude(tmp_path / "sweep", "test").splitlines()[0].split()[:2] == ["rank", "a"]


def test_an_unfinished_point_has_no_rank(point, tmp_path):
    point(0, "a=1", high=0.1, finished=False)
    point(1, "a=2", high=3.0)
    text = sweep_table.conclude(tmp_path / "sweep")
    lines = text.splitlines()
    assert lines[1].split() == ["1", "2", "1", "3", "0.5"]
    assert lines[2].split() == ["1", "0"]
    assert "1 of 2 points have no finished run and do not count" in lines
    assert (tmp_path / "sweep" / "sweep.png").read_bytes().startswith(b"\x89PNG")


def test_curves_of_different_length_are_pointed_out(point, make_run, tmp_path):
    point(0, "a=1", high=3.0)
    make_run("sweep/1", metrics={"validation_loss": [1.0] * 4}, overrides=["a=2", *FIXED])
    assert "the curves span 2 to 3 rounds: a shorter one encloses a smaller area" in sweep_table.conclude(
        tmp_path / "sweep"
    )


def test_without_a_validation_loss_nothing_is_ranked_and_results_stand_in_the_order_of_the_sweep(
    point, make_run, tmp_path
):
    make_run("sweep/0", accuracy=[0.25, 0.5], metrics={"test_loss": [1.0, 2.0]}, overrides=["a=2", "b=1", *FIXED])
    point(1, "a=1", "b=1", finished=False)
    folder = tmp_path / "sweep"
    assert sweep_table.conclude(folder) == (
        "a  seeds  test_loss AUC mean  final test accuracy\n2      1                 1.5                  0.5\n"
        "1      0\n"
        "not ranked: no finished run has a validation_loss; set evaluation.validation=true "
        "(or evaluation.rank_on=test)\n"
    )
    assert (folder / "sweep.csv").read_text() == "a,seeds,test_loss AUC mean,final test accuracy\n2,1,1.5,0.5\n1,0,,\n"
    assert not (folder / "sweep.png").exists()


def test_one_round_encloses_no_area(make_run, tmp_path):
    for number in range(2):
        make_run(
            f"sweep/{number}", accuracy=[0.5], metrics={"validation_loss": [1.0]}, overrides=[f"a={number}", *FIXED]
        )
    told = sweep_table.conclude(tmp_path / "sweep")
    assert told.endswith(
        "not ranked: the area under a curve needs at least two evaluated rounds, and an end, with every seed\n"
    )


def test_the_mean_of_a_row_is_that_of_all_its_seeds_or_none(point, make_run, tmp_path):
    point(0, "a=1", "seed=0", high=3.0)
    point(1, "a=1", "seed=1", high=1.0)
    point(2, "a=2", "seed=0", high=0.5)
    words, ends = ["a=2", "seed=1", *FIXED], [0.5, 0.5, 0.5, None]
    make_run("sweep/3", seed=1, metrics={"validation_loss": ends, "validation_accuracy": ends}, overrides=words)
    told, table = sweep_table.conclude(tmp_path / "sweep"), rank(tmp_path / "sweep")
    assert table["a"].astype(str).tolist() == ["1", "2"]
    assert table["rank"].isna().tolist() == [False, True]
    assert table["final validation accuracy"].isna().tolist() == [False, True]
    assert "1 of 2 rows have no area: with one of their seeds the curve has fewer than two evaluated rounds" in told


def test_the_csv_holds_every_row_and_the_terminal_the_best(point, tmp_path, monkeypatch):
    monkeypatch.setattr(sweep_table, "SHOWN", 2)
    for number in range(3):
        point(number, f"a={number}", high=3.0 - number)
    folder = tmp_path / "sweep"
    text = sweep_table.conclude(folder)
    assert f"... and 1 more in {folder / 'sweep.csv'}" in text
    assert pd.read_csv(folder / "sweep.csv")["a"].tolist() == [2, 1, 0]
    assert [bar.label for bar in sweep_table.best_bars(rank(folder), "validation_loss AUC")] == ["a=2", "a=1"]


def test_a_sweep_of_the_seed_alone_is_one_row(point, tmp_path):
    point(0, "seed=0", high=1.0)
    point(1, "seed=1", high=3.0)
    table = rank(tmp_path / "sweep")
    assert table.loc[0, ["rank", "seeds", "validation_loss AUC mean"]].tolist() == [1, 2, 2.0]
    assert sweep_table.conclude(tmp_path / "sweep").count("\n") == 2


def test_no_sweep(tmp_path):
    with pytest.raises(ConfigError, match="must be the folder of a sweep"):
        rank(tmp_path)


def test_a_key_that_a_point_leaves_alone_has_the_value_of_its_config(point, tmp_path):
    point(0, high=1.0, keys={"local.lr": 0.1})
    point(1, "local.lr=0.5", high=2.0, keys={"local.lr": 0.5})
    assert rank(tmp_path / "sweep")["local.lr"].tolist() == ["0.1", "0.5"]
