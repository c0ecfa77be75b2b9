"""Measures at the clients: of their own models, and of the global one at each of them."""

import pytest

from fedexp.compare import quantities
from fedexp.compare.pairing import pair_methods
from fedexp.compare.study import compare_methods
from fedexp.core.errors import ConfigError
from fedexp.report.read import at_clients

LINES = "client,metric,examples,global,personal\n0,accuracy,4,0.25,0.5\n1,accuracy,4,0.5,1.0\n2,accuracy,4,0.75,0.75\n"


def write(folder, lines=LINES):
    for run in sorted(folder.iterdir()):
        (run / "client_scores.csv").write_text(lines)
    return folder


def of(metric):
    return LINES.replace("accuracy", metric)


def personal(*last):
    names = ("accuracy", "worst_decile", "best_decile")
    return {f"personal_{name}": [None, None, None, value] for name, value in zip(names, last, strict=True)}


class TestMeasure:
    def test_by_hand(self, method, read):
        """Of three clients a tenth is one: 0.25 is the worst, 0.75 the best, and their mean 0.5."""
        (run,) = read(write(method("random", [0.8], metrics=personal(0.75, 0.5, 1.0))))
        names = list(at_clients.names("accuracy"))
        assert names == [
            "personal_accuracy", "personal_worst_decile", "personal_best_decile",
            "site_accuracy", "site_worst_decile", "site_best_decile",
        ]  # fmt: skip
        assert [at_clients.measure(run, name) for name in names] == [0.75, 0.5, 1.0, 0.5, 0.25, 0.75]

    def test_clients_that_never_train_are_left_out(self, method, read):
        head = "client,metric,examples,global,personal,unseen\n"
        lines = f"{head}0,accuracy,4,0.5,0.5,0\n1,accuracy,4,0.7,0.5,0\n2,accuracy,4,0.0,,1\n"
        (run,) = read(write(method("random", [0.8]), lines))
        assert at_clients.measure(run, "site_accuracy") == pytest.approx(0.6)

    def test_what_a_run_does_not_have_is_none(self, method, read):
        (run,) = read(method("random", [0.8]))
        assert [at_clients.measure(run, name) for name in at_clients.names("accuracy")] == [None] * 6
        assert at_clients.measure(run, "site_rmse") is None

    def test_scores_by_another_metric_are_not_taken_for_the_main_one(self, method, read):
        """Clusters are measured by accuracy, whatever the run's main metric is."""
        (run,) = read(write(method("random", [0.8]), of("auroc")))
        assert at_clients.measure(run, "site_accuracy") is None

    def test_of_a_metric_of_one_s_own_more_is_better(self, method, read):
        (run,) = read(write(method("random", [0.8], metrics={"test_f2": [1, 2, 3, 4], "test_accuracy": ...}), of("f2")))
        assert at_clients.measure(run, "site_worst_decile") == 0.25

    def test_where_less_is_better_the_worst_tenth_is_the_highest(self, method, read):
        (run,) = read(
            write(method("random", [0.8], metrics={"test_rmse": [4, 3, 2, 1], "test_accuracy": ...}), of("rmse"))
        )
        assert at_clients.measure(run, "site_worst_decile") == 0.75
        assert not quantities.parse("site_worst_decile", "", [run]).higher_is_better
        assert not quantities.parse("personal_rmse", "").higher_is_better


class TestCompare:
    def test_personal_methods_by_their_own_models(self, method, read):
        a = method("all", [0.1, 0.1], metrics=personal(0.9, 0.8, 1.0), keys={"local.layers": "norms"})
        b = method("random", [0.1, 0.1], metrics=personal(0.7, 0.4, 1.0))
        method_pairs = pair_methods(read(a), read(b))
        rows = compare_methods(method_pairs, ["personal_accuracy", "personal_worst_decile"]).rows
        assert [(row.result.a, row.result.b) for row in rows] == [(0.9, 0.7), (0.8, 0.4)]
        assert [row.quantity.better for row in rows] == ["more", "more"]
        assert any(
            "--measures personal_accuracy,personal_worst_decile" in note
            for note in compare_methods(method_pairs, []).notes
        )

    def test_no_global_model_where_clients_train_alone(self, method, read):
        alone = "client,metric,examples,global,personal,test\n0,accuracy,4,,0.5,0.4\n1,accuracy,4,,1.0,0.4\n"
        a = write(method("all", [0.7], keys={"scenario.training": "local"}), alone)
        b = write(method("random", [0.7]))
        with pytest.raises(ConfigError, match=r"site_accuracy left out: .* has none: its clients train alone"):
            compare_methods(pair_methods(read(a), read(b)), ["site_accuracy"])

    def test_other_examples_held_out_are_not_compared(self, method, read):
        kept = personal(0.9, 0.8, 1.0)
        a = method("all", [0.7], metrics=kept, keys={"scenario.training": "local"}, summary={"split_sha256": "other"})
        method_pairs = pair_methods(read(a), read(method("random", [0.7], metrics=kept)))
        with pytest.raises(ConfigError, match="the clients of seed 0 measure models on different examples"):
            compare_methods(method_pairs, ["personal_accuracy"])

    def test_a_name_that_is_none_is_answered_with_the_nearest(self):
        with pytest.raises(ConfigError, match="did you mean personal_worst_decile"):
            quantities.parse("personal_worst_decil", "")
