"""The first screen: every part that is not at its default, and what came out."""

from pathlib import Path

from fedexp import cli
from fedexp.report.read.methods import group_runs
from fedexp.report.read.runs import collect_runs
from fedexp.report.topics import setup, tables

QUOTED = "'model.hidden=[8]'"


def outcome(methods):
    return setup.outcome(tables.make_tables(methods))


def test_the_best_comes_first_and_chance_is_named(make_run, tmp_path: Path):
    for seed in (0, 1):
        make_run(f"a{seed}", seed=seed, accuracy=(0.3, 0.4))
        make_run(f"b{seed}", seed=seed, accuracy=(0.3, 0.6 + seed / 5), choices={"selector": "all"})
    assert outcome(group_runs(collect_runs([tmp_path])[0])) == (
        "Final test accuracy, highest mean first (2 seeds): all 0.7000 ± 0.1414; random 0.4000 ± 0.0000. With "
        "fewer than 6 seeds of each method no difference can be shown to be more than chance."
    )
    for seed in range(2, 6):
        make_run(f"a{seed}", seed=seed, accuracy=(0.3, 0.4))
        make_run(f"b{seed}", seed=seed, accuracy=(0.3, 0.6), choices={"selector": "all"})
    told = outcome(group_runs(collect_runs([tmp_path])[0]))
    assert told.endswith(" Whether differences are more than chance is tested by fedexp compare.")


def test_the_outcome_has_the_unit_of_the_tables(make_run, tmp_path: Path):
    make_run("a", accuracy=(0.3, 0.4))
    in_percent = tables.make_tables(group_runs(collect_runs([tmp_path])[0]), tables.View(percent=True))
    assert setup.outcome(in_percent) == "Final test accuracy in % of random 40.00, 1 seed."


def test_models_of_the_clients_own_have_a_ranking_of_their_own(make_run, tmp_path: Path):
    for name, own in (("fedavg", 0.5), ("ditto", 0.75)):
        folder = make_run(name, accuracy=(0.3, 0.4), choices={"local": name}, metrics={"personal_accuracy": own})
        lines = "".join(f"{client},accuracy,9,0.5,{own}\n" for client in range(4))
        (folder / "client_scores.csv").write_text(f"client,metric,examples,global,personal\n{lines}")
    assert (
        "Personal accuracy (of the model that each client uses), highest mean first (1 seed): ditto 0.7500; fedavg "
        "0.5000."
    ) in outcome(group_runs(collect_runs([tmp_path])[0]))


def test_one_method_and_none_that_was_measured(make_run, tmp_path: Path):
    make_run("a/0", accuracy=(0.3, 0.4))
    make_run("b/0", accuracy=(None, None))
    assert outcome(group_runs(collect_runs([tmp_path / "a"])[0])) == "Final test accuracy of random 0.4000, 1 seed."
    assert outcome(group_runs(collect_runs([tmp_path / "b"])[0])) == "No run measured its accuracy on test data."


def test_every_part_that_is_not_at_its_default(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = [
        "federation=dirichlet",
        "federation.alpha=0.1",
        "attack=alie",
        "scenario.malicious=2",
        "local.lr=0.3",
        "scenario.byzantine=1",
    ]
    words += [
        "local.momentum=0.5",
        "scenario.byzantine=1",
        "loss.label_smoothing=0.1",
        "schedule=cosine",
        "codec=float16",
        "model.hidden=[8]",
        "rounds=1",
    ]
    for name, more in (("a", []), ("b", ["aggregator=median"])):
        assert cli.main(["run", *words, *more, "pictures=false", f"hydra.run.dir={name}"]) == 0
    capsys.readouterr()
    facts = dict(setup.facts(group_runs(collect_runs([Path("a"), Path("b")])[0])))
    alie = facts.pop("Attack")
    assert alie.startswith("alie")
    first, second = facts.pop("Command").split("; ")
    assert first == f"fedexp run {' '.join(words).replace('model.hidden=[8]', QUOTED)} pictures=false"
    assert "aggregator=median" in second
    assert facts == {
        "Compared": "fedavg; median",
        "Data": "digits",
        "Split": "dirichlet (alpha=0.1)",
        "Clients": "10",
        "Participants": "10 a round",
        "Model": "mlp (hidden=[8])",
        "Local rule": "sgd (momentum=0.5)",
        "Selection": "random",
        "Loss": "cross_entropy (label_smoothing=0.1)",
        "Schedule": "cosine",
        "Codec": "float16",
        "Local work": "1 epoch, batches of 20",
        "Learning rate": "0.3",
        "Rounds": "1",
        "Scenario": "malicious=2, byzantine=1",
        "Not the same for all": "Aggregation (see Differences)",
    }


def test_a_part_inside_of_another_is_told(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["model=mixture", "model@model.component=logistic", "model.components=2", "rounds=1", "pictures=false"]
    assert cli.main(["run", *words, "hydra.run.dir=a"]) == 0
    capsys.readouterr()
    facts = dict(setup.facts(group_runs(collect_runs([Path("a")])[0])))
    assert facts["Model"] == "mixture (component=logistic, components=2)"
