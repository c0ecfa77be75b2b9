"""Who is compared with whom, and what is refused."""

import json
import re
from dataclasses import replace

import pytest

from fedexp.compare.page import markdown
from fedexp.compare.pairing import pair_methods
from fedexp.compare.study import compare_methods
from fedexp.core.errors import ConfigError
from fedexp.report.read import clocks


@pytest.fixture
def refused(read):
    """The error of comparing two folders."""

    def error(a, b):
        with pytest.raises(ConfigError) as caught:
            pair_methods(read(a), read(b))
        return str(caught.value)

    return error


def test_runs_are_paired_by_seed_and_what_differs_is_told(method, read):
    (method_pair,) = pair_methods(read(method("greedyfed", [0.8, 0.9])), read(method("random", [0.7, 0.8])))
    assert (method_pair.a, method_pair.b, method_pair.blocks) == ("greedyfed", "random", ("seed 0", "seed 1"))
    assert [(a.seed, b.seed) for a, b in method_pair.pairs] == [(0, 0), (1, 1)]
    assert method_pair.differences == ("selector: greedyfed / random",)
    assert method_pair.notes == ()


def test_of_parts_that_differ_those_keys_are_told_that_both_have_or_that_are_changed(method, read):
    def one(name, change):
        place = method("random", [0.8], name=name)
        content = json.loads((place / "0" / "config.json").read_text())
        content["config"]["local"] = {"momentum": 0.0, **change}
        content["choices"]["local"] = name
        (place / "0" / "config.json").write_text(json.dumps(content))
        return read(place)

    a, b = one("prox", {"lr": 0.05, "mu": 0.5, "beta1": 0.9}), one("sgd", {"lr": 0.1, "worker_momentum": False})
    (method_pair,) = pair_methods(a, b)
    assert method_pair.differences == ("local: prox / sgd", "local.lr: 0.05 / 0.1", "local.mu: 0.5 / null")


def test_every_method_of_a_meets_the_one_of_b_and_runs_of_b_are_not_compared_with_themselves(method, read, tmp_path):
    for name in ("afl", "random", "ucb"):
        method(name, [0.8, 0.9])
    found = pair_methods(read(tmp_path), read(tmp_path / "random"))
    assert [(method_pair.a, method_pair.b) for method_pair in found] == [("afl", "random"), ("ucb", "random")]


def test_b_must_be_one_method(method, tmp_path, refused):
    a = method("greedyfed", [0.8], name="mine/a")
    method("random", [0.8], name="yours/r")
    method("ucb", [0.8], name="yours/u")
    assert "must be one method, got 2: random; ucb; give" in refused(a, tmp_path / "yours")


def test_the_same_runs_on_both_sides_are_refused(method, refused):
    a = method("random", [0.8, 0.9])
    assert refused(a, a).startswith("A and B are the same runs")


def test_the_same_method_from_two_places_is_told_apart_by_them(method, read, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    old, new = method("random", [0.8, 0.9], name="old"), method("random", [0.8, 0.9], name="new")
    (method_pair,) = pair_methods(read(new), read(old))
    assert (method_pair.a, method_pair.b, method_pair.differences) == ("random in new", "random in old", ())


def test_seeds_without_a_partner_and_unfinished_runs_are_left_out_by_name(
    method, read, make_run, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    a, b = method("greedyfed", [0.8, 0.9, 0.9]), method("random", [0.7, 0.8])
    make_run("greedyfed/3", seed=3, choices={"selector": "greedyfed"}, finished=False)
    (method_pair,) = pair_methods(read(a), read(b))
    assert len(method_pair.pairs) == 2
    assert method_pair.notes == (
        "left out, unfinished: greedyfed/3",
        "left out, without a partner: greedyfed/2 of A",
    )


def test_only_unfinished_runs_are_refused_by_name(method, make_run, tmp_path, refused):
    make_run("a/0", choices={"selector": "ucb"}, finished=False)
    said = refused(tmp_path / "a", method("random", [0.7]))
    assert re.fullmatch(r"compare needs finished runs, but of A none of \S+a/0 is; resume them", said)


def test_no_seed_in_common(method, make_run, tmp_path, refused):
    make_run("a/7", seed=7, choices={"selector": "ucb"})
    assert "no seed in common, A has 7 and B 0, 1; run" in refused(tmp_path / "a", method("random", [0.7, 0.8]))


def test_one_seed_twice_is_refused(method, make_run, refused):
    a = method("ucb", [0.7])
    make_run("ucb/again", seed=0, choices={"selector": "ucb"})
    assert "are the same method with the same seed 0; give one of them" in refused(a, method("random", [0.7]))


def test_datasets_are_blocks_of_their_own(method, read, tmp_path):
    for data in ("x", "y"):
        for name in ("ucb", "random"):
            method(name, [0.7, 0.8], name=f"{name}/{data}", keys={"dataset.name": data})
    (method_pair,) = pair_methods(read(tmp_path / "ucb"), read(tmp_path / "random"))
    assert method_pair.blocks == (
        "dataset.name=x seed 0", "dataset.name=x seed 1", "dataset.name=y seed 0", "dataset.name=y seed 1",
    )  # fmt: skip
    assert (method_pair.a, method_pair.b) == ("ucb", "random")


def test_other_data_is_refused_by_the_key_that_differs(method, refused):
    a, b = method("ucb", [0.7], keys={"federation.alpha": 0.3}), method("random", [0.7], keys={"federation.alpha": 1.0})
    assert "their data differ, federation.alpha is 0.3 and 1; run both on the same data" in refused(a, b)
    a, b = (
        method("random", [0.7], name=name, keys={"federation.alpha": alpha}) for name, alpha in (("c", 0.3), ("d", 1.0))
    )
    assert re.match(r"alpha=0.3 in \S+/c/0 and alpha=1 in \S+/d/0 cannot be compared: ", refused(a, b))


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("rounds", (4, 5)),
        ("scenario.clients", (4, 8)),
        ("scenario.participants", (2, 3)),
        ("evaluation.every", (1, 2)),
        ("evaluation.every_s", (60, 120)),
        ("stop.value", (0.5, 0.9)),
    ],
)
def test_other_budgets_are_refused(method, refused, key, values):
    a, b = (method(name, [0.7], keys={key: value}) for name, value in zip(("ucb", "random"), values, strict=True))
    assert f"budgets differ, {key} is {values[0]} and {values[1]}; run both with the same {key}" in refused(a, b)


def test_where_the_selector_says_how_many_take_part_its_count_is_the_budget(method, read, refused):
    follows = {"scenario.participants": 2, "selector.count": "${scenario.participants}"}
    a = method("ucb", [0.7], keys={"scenario.participants": 3, "selector.count": 2})
    b, c = method("random", [0.7], keys=follows), method("afl", [0.7], keys={**follows, "scenario.participants": 3})
    assert len(pair_methods(read(a), read(b))) == 1
    told = "differ, selector.count is 2 for one and scenario.participants is 3 for the other; give both the same number"
    assert told in refused(a, c)


def test_more_participants_than_clients_are_all_clients(method, read):
    a, b = (method(name, [0.7], keys={"scenario.participants": n}) for name, n in (("ucb", 4), ("random", 20)))
    assert len(pair_methods(read(a), read(b))) == 1


@pytest.mark.parametrize(
    ("key", "values", "name"),
    [("local.epochs", (1, 5), "epochs"), ("local.steps", (7, 9), "steps"), ("local.batch_size", ("full", 20), "steps")],
)
def test_other_work_is_refused_unless_it_is_accepted(method, read, refused, key, values, name):
    a, b = (
        method(selector, [0.7], keys={key: value}) for selector, value in zip(("ucb", "random"), values, strict=True)
    )
    told = f"{key} is {values[0]} and {values[1]}"
    assert f"budgets differ, {told}; run both with the same, or accept it with --unequal {name}" in refused(a, b)
    (method_pair,) = pair_methods(read(a), read(b), {name})
    assert f"unequal {name}, accepted by --unequal: {told}" in method_pair.notes


def test_other_traffic_is_refused_unless_it_is_accepted(method, read, refused):
    a = method("scaffold", [0.7], metrics={"mb_down": 2.0, "mb_up": 2.0})
    b = method("random", [0.7], metrics={"mb_down": 1.0, "mb_up": 1.0})
    assert (
        "budgets differ, 16 and 8 MB were sent; run both with the same, or accept it with --unequal megab"
        in refused(a, b)
    )
    (method_pair,) = pair_methods(read(a), read(b), {"megabytes"})
    assert method_pair.notes == ("unequal megabytes, accepted by --unequal: 16 and 8 MB were sent",)


@pytest.mark.parametrize(("link", "is_said"), [("shared", True), ("own", False)])
def test_simulated_seconds_of_a_shared_link_do_not_compare_with_those_of_a_synchronous_run(method, read, link, is_said):
    keys = {"fleet.link": link}
    a, b = method("ucb", [0.7], keys=keys), method("afl", [0.7], keys=keys, metrics={"pacing.in_flight": 3.0})
    (method_pair,) = pair_methods(read(a), read(b))
    assert (clocks.NOTE in method_pair.notes) == is_said
    assert clocks.NOTE not in pair_methods(read(a), read(method("random", [0.7], keys=keys)))[0].notes


def test_another_dataset_digest_is_refused(method, refused):
    a, b = method("ucb", [0.7], summary={"data_sha256": "e"}), method("random", [0.7])
    assert "cannot be compared: their data differ, data_sha256 in summary.json says so" in refused(a, b)


def test_another_split_is_refused_with_advice_on_validation_data(method, refused):
    a, b = method("ucb", [0.7], summary={"split_sha256": "other"}), method("random", [0.7])
    said = refused(a, b)
    assert "their clients hold different examples, split_sha256 in summary.json says so" in said
    assert "set evaluation.validation=true for all" in said


def test_another_split_names_the_key_that_holds_examples_out(method, refused):
    a = method("ucb", [0.7], summary={"split_sha256": "other"}, keys={"evaluation.personal_fraction": 0.2})
    said = refused(a, method("random", [0.7]))
    assert "evaluation.personal_fraction is 0.2 for one and None for the other; give both the same" in said


@pytest.mark.parametrize("key", ["split_sha256", "data_sha256"])
def test_runs_whose_data_are_unknown_are_refused(key, method, refused):
    a, b = method("ucb", [0.7], summary={key: None}), method("random", [0.7])
    assert f"or nobody can tell: a summary.json has no {key}" in refused(a, b)


def test_other_code_is_told(method, read):
    a, b = method("random", [0.7], name="a", summary={"git": {"commit": "b" * 40}}), method("random", [0.7])
    (method_pair,) = pair_methods(read(a), read(b))
    assert method_pair.differences == ("commit: bbbbbbbbbb / 0123456789",)
    assert json.loads((b / "0" / "summary.json").read_text())["git"]["commit"].startswith("0123456789")


class TestTraining:
    """Local, central and federated training of the same data."""

    def test_who_sends_what_and_who_takes_part_may_differ(self, method, read):
        a = method("all", [0.7], keys={"scenario.training": "local"}, metrics={"mb_down": 0.0, "mb_up": 0.0})
        more = {"scenario.participants": 3}
        b = method("random", [0.8], keys=more, metrics={"mb_down": 1.0, "mb_up": 1.0})
        (method_pair,) = pair_methods(read(a), read(b))
        assert method_pair.notes == (
            "A is local, B federated training, of the same data and with the same test examples",
            "A has no global model: its test scores are means over the clients' own models",
            "scenario.participants is 2 and 3",
            "0 and 8 MB were sent",
        )

    def test_who_trains_on_what_is_told(self, method, read):
        keys = {"scenario.training": "central", "evaluation.personal_fraction": 0.2}
        a = method("all", [0.7], keys=keys, summary={"split_sha256": "other"})
        (method_pair,) = pair_methods(read(a), read(method("random", [0.8])))
        assert method_pair.notes[1:] == (
            "they train on different examples, evaluation.personal_fraction is 0.2 and null",
        )

    def test_the_federation_of_one_meets_a_federation_of_its_data_but_not_two_at_once(
        self, method, read, make_run, tmp_path
    ):
        for alpha in (0.1, 1.0):
            method("random", [0.8], name=f"{alpha}", keys={"federation.alpha": alpha})
        folder = make_run("a/0", choices={"selector": "random", "federation": "central"})
        told = json.loads((folder / "summary.json").read_text())
        (folder / "summary.json").write_text(json.dumps(told | {"data_sha256": "d", "split_sha256": "whole"}))
        with pytest.raises(ConfigError, match=r"a/0 of central .* one partner, .* not independent, got 2 .*KEY=VALUE"):
            pair_methods(read(tmp_path / "a"), read(tmp_path / "0.1", tmp_path / "1.0"))
        with pytest.raises(ConfigError, match="a/0 of central can have one partner"):
            pair_methods(read(tmp_path / "0.1", tmp_path / "1.0"), read(tmp_path / "a"))
        (method_pair,) = pair_methods(read(tmp_path / "a"), read(tmp_path / "0.1"))
        assert method_pair.blocks == ("seed 0",)
        assert (
            "A is central, B federated training, of the same data and with the same test examples" in method_pair.notes
        )

    @pytest.mark.parametrize(("key", "values"), [("rounds", (4, 5)), ("local.epochs", (1, 2))])
    def test_rounds_and_work_are_refused_all_the_same(self, method, refused, key, values):
        a = method("all", [0.7], keys={"scenario.training": "local", key: values[0]})
        assert f"budgets differ, {key} is" in refused(a, method("random", [0.7], keys={key: values[1]}))

    def test_other_test_examples_are_refused(self, method, refused):
        a = method("all", [0.7], keys={"scenario.training": "local"}, summary={"data_sha256": "e"})
        assert "their data differ" in refused(a, method("random", [0.7]))


def test_names_of_a_folder_are_no_markup_on_the_page(method, read):
    hostile = {"local.order": "<img src=x>[a](b)"}
    method_pairs = pair_methods(read(method("<b>", [0.8, 0.9], name="a", keys=hostile)), read(method("random", [0.7])))
    method_pairs = [
        replace(method_pair, notes=(*method_pair.notes, "left out: <b> `<c>`")) for method_pair in method_pairs
    ]
    text = markdown(compare_methods(method_pairs, ["test_accuracy"]), method_pairs, None)
    assert "src=x" in text
    assert "* left out: \\<b> `<c>`\n" in text
    assert not re.search(r"(?<!\\)<(img|b)|(?<!\\)\[a\]", text)


def test_a_threshold_that_one_method_reaches_is_not_chosen_because_it_has_more_opponents(method, read, tmp_path):
    for name in ("afl", "ucb", "fedcs"):
        method(name, [0.6, 0.6])
    method("random", [0.95, 0.95])
    method_pairs = pair_methods(read(tmp_path), read(tmp_path / "random"))
    names = {row.quantity.name for row in compare_methods(method_pairs, []).rows}
    assert {name for name in names if name.startswith("roa")} == {"roa@0.5"}  # 0.8 is reached by two runs of eight


def test_a_measure_that_is_named_twice_is_one(method, read):
    method_pairs = pair_methods(read(method("afl", [0.6, 0.7])), read(method("random", [0.8, 0.9])))
    assert len(compare_methods(method_pairs, ["test_accuracy", "roa@0.8", "test_accuracy", "roa@0.80"]).rows) == 2


def test_a_run_whose_metric_is_infinite_at_its_end_has_neither_an_end_nor_an_area(method, read):
    metrics = {"test_perplexity": [20.0, 10.0, 5.0, None]}
    broken, sound = method("afl", [0.6], metrics=metrics), method("random", [0.8], metrics={"test_perplexity": 5.0})
    method_pairs = pair_methods(read(broken), read(sound))
    comparison = compare_methods(method_pairs, ["test_perplexity", "perplexity_auc", "test_accuracy"])
    assert [row.quantity.name for row in comparison.rows] == ["test_accuracy"]
    assert {"test_perplexity", "perplexity_auc"} < {note.partition(" left out: ")[0] for note in comparison.notes}
