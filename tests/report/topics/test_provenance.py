from fedexp.report.read.methods import group_runs
from fedexp.report.read.runs import collect_runs
from fedexp.report.topics import provenance


def test_more_settings_than_methods_are_rows(make_run, tmp_path):
    for name, rate, momentum in (("0", 0.1, 0.5), ("1", 0.2, 0.9)):
        make_run(name, keys={"local.lr": rate, "local.momentum": momentum, "local.decay": rate})
    grid = provenance.differences_table(group_runs(collect_runs([tmp_path])[0]))
    assert grid is not None
    assert grid.headings[0] == "setting"
    assert list(grid.rows) == [
        ("local.decay", "0.1", "0.2"),
        ("local.lr", "0.1", "0.2"),
        ("local.momentum", "0.5", "0.9"),
    ]


def test_as_many_methods_as_settings_are_rows(make_run, tmp_path):
    for name, rate in (("0", 0.1), ("1", 0.2)):
        make_run(name, keys={"local.lr": rate})
    grid = provenance.differences_table(group_runs(collect_runs([tmp_path])[0]))
    assert grid is not None
    assert grid.headings == ("method", "local.lr")
    assert grid.rows == [["lr=0.1", "0.1"], ["lr=0.2", "0.2"]]


def test_that_errors_are_in_deviations_of_the_targets_is_told_of_numbers(make_run, tmp_path):
    for name, predicts, scale in (("0", "numbers", "standard"), ("1", "numbers", "raw"), ("2", "class", "standard")):
        make_run(name, keys={"dataset.predicts": predicts, "dataset.target_scale": scale})
    notes = provenance.caveats(group_runs(collect_runs([tmp_path])[0]))
    told = (
        "RMSE and MAE are in standard deviations of the targets, of training or of public ones, and losses are of "
        "targets that were divided by these (`dataset.target_scale=standard`)."
    )
    assert len(notes) == 1
    assert notes[0].endswith(f": {told}")
    alone = provenance.caveats(group_runs(collect_runs([tmp_path / "0"])[0]))
    assert alone == [told]


def test_that_a_table_is_encoded_by_everybody_is_told_of_clients_that_train_alone(make_run, tmp_path):
    for name, training, statistics in (("0", "local", "pooled"), ("1", "local", "public"), ("2", None, "pooled")):
        make_run(name, keys={"scenario.training": training, "dataset.statistics": statistics})
    notes = provenance.caveats(group_runs(collect_runs([tmp_path])[0]))
    assert [note.partition(": ")[2] for note in notes] == [
        "every client trained alone, but the table is encoded by means, deviations and categories of all clients' "
        "training rows (`dataset.statistics=pooled`)."
    ]
