import pytest

from fedexp.report.draw import style
from fedexp.report.read.methods import group_runs
from fedexp.report.read.runs import collect_runs
from fedexp.report.topics import learning


def test_columns_of_a_part_that_vary_are_further_measures(make_run, tmp_path):
    make_run(
        "0", metrics={"attack.malicious": [0, 1, 0, 2], "aggregator.dropped": 0, "selector.shapley_s": [1, 2, 3, 4]}
    )
    assert learning.further_columns(
        group_runs(collect_runs([tmp_path])[0]), ("test_accuracy", "test_loss", "train_loss")
    ) == ["attack.malicious"]


@style.style()
def test_what_was_measured_stands_under_tabs(make_run, tmp_path):
    make_run("0", metrics={"validation_accuracy": 0.5, "train_loss": 2.0, "x/../y": [1, 2, 3, 4]})
    part = learning.build_section(group_runs(collect_runs([tmp_path])[0]))
    assert part is not None
    assert [(picture.name, picture.tab) for picture in part.pictures] == [
        ("learning", "Test"),
        ("learning_loss", "Test"),
        ("validation", "Validation"),
        ("training_loss", "Training"),
        ("measure_1", "Further measures"),  # a column's name is no file's name
    ]
    assert part.pictures[-1].title == "x/../y"


@style.style()
@pytest.mark.parametrize(("rules", "warned"), [(("sgd", "fedntd"), True), (("sgd", "sgd"), False)])
def test_training_losses_of_different_local_rules_are_said_to_be_no_comparison(make_run, tmp_path, rules, warned):
    for number, rule in enumerate(rules):
        make_run(str(number), choices={"local": rule, "selector": f"s{number}"}, metrics={"train_loss": 2.0})
    part = learning.build_section(group_runs(collect_runs([tmp_path])[0]))
    assert part is not None
    captions = {picture.name: "of the same rule only" in picture.caption for picture in part.pictures}
    assert captions == {"learning": False, "learning_loss": False, "training_loss": warned}
