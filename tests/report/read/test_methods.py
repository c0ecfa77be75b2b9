import json
from pathlib import Path

import pytest

from fedexp.config.override_text import short_text
from fedexp.report.read import methods, runs
from fedexp.report.topics import tables


@pytest.fixture
def labels(make_run, tmp_path):
    """The labels of runs given as (choices, keys)."""

    def made(*given):
        for number, (choices, keys) in enumerate(given):
            make_run(str(number), choices=choices, keys=keys)
        found, _ = runs.collect_runs([tmp_path])
        return [method.label for method in methods.group_runs(found)]

    return made


def test_runs_that_differ_in_the_seed_the_engine_or_the_tracker_are_one_method(make_run, tmp_path):
    make_run("0", seed=0, keys={"fleet.seed": "${seed}"})
    make_run(
        "1", seed=1, keys={"fleet.seed": "${seed}", "engine.workers": 2, "checkpoint_s": 9.0, "evaluation.roa": [0.1]}
    )
    make_run("2", seed=2, keys={"fleet.seed": "${seed}"}, choices={"engine": "loop"}, finished=False)
    make_run("3", seed=3, keys={"fleet.seed": "${seed}", "tracker.uri": "http://host"}, choices={"tracker": "mlflow"})
    (method,) = methods.group_runs(runs.collect_runs([tmp_path])[0])
    assert [run.seed for run in method.runs] == [0, 1, 3]
    assert [run.seed for run in method.unfinished] == [2]
    assert (method.label, method.unfinished_count) == ("random", 1)


def test_of_the_runs_of_one_seed_the_first_finished_one_counts(make_run, tmp_path):
    make_run("0", seed=0, accuracy=(0.1, 0.2), finished=False)
    make_run("1", seed=0, accuracy=(0.1, 0.9))
    make_run("2", seed=0, accuracy=(0.1, 0.9))
    make_run("3", seed=1, accuracy=(0.1, 0.7))
    (method,) = methods.group_runs(runs.collect_runs([tmp_path])[0])
    assert [run.folder.name for run in method.runs] == ["1", "3"]
    assert [run.folder.name for run in method.repeats] == ["0", "2"]
    (table,) = tables.make_tables([method])
    value = table.rows[0]["final accuracy"]
    assert (value.mean, value.runs) == (pytest.approx(0.8), 2)


def test_a_differing_group_names_the_method(labels):
    assert labels(({"selector": "greedyfed"}, {"selector.memory": 3}), ({"selector": "ucb"}, {})) == [
        "greedyfed",
        "ucb",
    ]


def test_several_differing_groups_name_it_together_and_the_selector_first(labels):
    greedy, even = {"fleet": "a", "selector": "greedyfed"}, {"fleet": "b", "selector": "random"}
    assert labels((greedy, {}), (even, {})) == ["greedyfed, a", "random, b"]


def test_options_that_do_not_speak_for_themselves_bear_their_group(labels):
    assert labels(({"fleet": "none"}, {}), ({"fleet": "simulated"}, {})) == ["fleet=none", "fleet=simulated"]
    assert short_text([1, 0.5, None, True]) == "[1,0.5,null,true]"


def test_a_schedule_bears_its_group(labels):
    assert labels(({}, {}), ({"schedule": "cosine"}, {})) == ["schedule=constant", "schedule=cosine"]


def test_a_warm_up_is_told_and_none_is_as_good_as_no_schedule(labels):
    steady = "fedexp.parts.schedule.contract.Schedule"
    told = [{"schedule._target_": steady, "schedule.warmup": warmup} for warmup in (0, 5)]
    old, warm = labels(({}, {}), *(({"schedule": "constant"}, keys) for keys in told))
    assert old.endswith("warmup=null")
    assert warm.endswith("warmup=5")


def test_the_same_option_of_two_groups_bears_its_group(labels):
    given = ({"local": "adam", "server_optimizer": "sgd"}, {}), ({"local": "sgd", "server_optimizer": "adam"}, {})
    assert labels(*given) == ["local=adam, server_optimizer=sgd", "local=sgd, server_optimizer=adam"]


def test_keys_tell_apart_what_has_the_same_options(labels):
    given = [({"selector": "s"}, {"local.lr": 0.1}), ({"selector": "s"}, {"local.lr": 0.25}), ({}, {"local.lr": 0.1})]
    assert labels(*given) == ["s, lr=0.1", "s, lr=0.25", "random"]


def test_keys_that_follow_another_key_are_not_named(labels):
    assert labels(({}, {"scenario.participants": 2}), ({}, {"scenario.participants": 3})) == [
        "participants=2",
        "participants=3",
    ]


def test_an_ambiguous_last_word_brings_the_whole_key(labels):
    assert labels(({}, {"local.lr": 1, "server.lr": 1}), ({}, {"local.lr": 2, "server.lr": 3})) == [
        "local.lr=1, server.lr=1",
        "local.lr=2, server.lr=3",
    ]


def test_an_absent_key_is_null(labels):
    assert labels(({}, {"local.steps": None}), ({}, {"local.steps": 5})) == ["steps=null", "steps=5"]


def test_an_algorithm_stands_for_the_options_it_brings(labels):
    prox, plain = {"algorithm": "fedprox", "local": "prox"}, {"algorithm": "fedavg", "local": "sgd"}
    given = [(prox, {}), (plain, {"a": 1}), ({"local": "adam"}, {}), ({**plain, "selector": "all"}, {})]
    assert labels(*given) == ["fedprox", "fedavg", "adam", "all"]  # with all clients it is not FedAvg's


def test_beside_algorithms_usual_parts_give_no_name(labels):
    prox, usual = {"algorithm": "fedprox", "local": "prox"}, {"local": "sgd", "selector": "random"}
    given = [(prox, {}), (usual, {}), ({**usual, "selector": "ucb"}, {}), ({**usual, "model": "cnn"}, {})]
    assert labels(*given) == ["fedprox", "random", "ucb", "cnn"]


@pytest.mark.parametrize(
    ("choices", "name"),
    [
        ({"selector": "random"}, "random"),
        ({"selector": "random", "aggregator": "krum", "attack": "zero"}, "krum, zero"),
        ({"selector": "random", "algorithm": "fedprox", "local": "prox"}, "fedprox"),
        ({"selector": "ucb", "algorithm": "fedprox", "local": "prox"}, "ucb, prox"),
    ],
)
def test_a_run_alone_is_named_by_what_is_not_usual(labels, choices, name):
    assert labels((choices, {})) == [name]


def test_two_versions_of_an_own_part_are_two_methods(make_run, tmp_path: Path):
    for name, digest in (("old", "1" * 32), ("new", "2" * 32)):
        for seed in (0, 1):
            path = make_run(f"{name}/{seed}", seed=seed) / "config.json"
            path.write_text(json.dumps({**json.loads(path.read_text()), "modules": {"mine.clip": digest}}))
    found = methods.group_runs(runs.collect_runs([tmp_path])[0])
    assert [(method.label, len(method.runs), len(method.repeats)) for method in found] == [
        ("mine/clip=22222222", 2, 0),
        ("mine/clip=11111111", 2, 0),
    ]
    assert methods.differing_keys([method.runs[0] for method in found]) == ["code.mine/clip"]


def test_the_code_of_an_own_part_sets_it_apart_from_no_built_in_one(make_run, tmp_path: Path):
    for rule in ("median", "mine"):
        path = make_run(rule, choices={"aggregator": rule}) / "config.json"
        modules = {"mine": "1" * 32} if rule == "mine" else {}
        path.write_text(json.dumps({**json.loads(path.read_text()), "modules": modules}))
    found = runs.collect_runs([tmp_path])[0]
    assert methods.differing_keys(found) == []
    assert [method.label for method in methods.group_runs(found)] == ["median", "mine"]
