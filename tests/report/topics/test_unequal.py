"""What a report says of methods that were not run under the same conditions."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fedexp import run
from fedexp.report.read import methods, runs
from fedexp.report.topics.unequal import unequal_conditions


def notes(folder: Path) -> list[str]:
    return list(unequal_conditions(methods.group_runs(runs.collect_runs([folder])[0])))


def hold(folder: Path, *examples: int) -> None:
    lines = [f"{client},{count}\n" for client, count in enumerate(examples)]
    (folder / "federation.csv").write_text("client,examples\n" + "".join(lines))


def test_equal_conditions_are_not_spoken_of(make_run: Callable[..., Path], tmp_path: Path):
    for number in range(2):
        hold(make_run(str(number), choices={"selector": f"s{number}"}), 700, 800)
    assert notes(tmp_path) == []


def test_fewer_examples_to_train_on(make_run: Callable[..., Path], tmp_path: Path):
    for number, count in enumerate((1000, 800, 800)):
        hold(make_run(str(number), choices={"selector": f"s{number}"}), 200, count)
    (note,) = notes(tmp_path)
    assert note.startswith(
        "The methods train on unequal numbers of examples: 1,200 (s0), 1,000 (s1; s2). Hold out the same"
    )


@pytest.mark.parametrize("word", ["selector=greedyfed", "aggregator=zeno", "evaluation.personal_fraction=0.3"])
def test_real_runs_of_which_one_holds_examples_out(tmp_path: Path, word: str):
    made = ("dataset=synthetic", "dataset.train_size=120", "scenario.clients=6", "scenario.participants=3", "rounds=1")
    for name, words in (("a", ()), ("b", (word,))):
        run(*made, *words, "engine.workers=1", "pictures=false", folder=tmp_path / name, quiet=True)
    assert notes(tmp_path)[0].startswith("The methods train on unequal numbers of examples: ")


def test_runs_of_one_seed_are_compared(make_run: Callable[..., Path], tmp_path: Path):
    """Clients hold other numbers of examples with another seed, and nothing follows from that."""
    for name, selector, seed, count in (("0", "a", 0, 5), ("1", "a", 1, 6), ("2", "b", 1, 6)):
        hold(make_run(name, seed=seed, choices={"selector": selector}), count)
    assert notes(tmp_path) == []


def test_an_accuracy_that_is_the_share_of_one_class(make_run: Callable[..., Path], tmp_path: Path):
    for number, answer in enumerate(("accuracy 0.9 is the share of the largest class (no)", None)):
        folder = make_run(str(number), seed=number)
        path = folder / "summary.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "constant_answer": answer}))
    (note,) = notes(tmp_path)
    assert "is no better than a single answer's in 1 of 2 run(s): accuracy 0.9 is the share of" in note


def test_splits_that_differ(make_run: Callable[..., Path], tmp_path: Path):
    for number, split in enumerate(("iid", "dirichlet", "iid")):
        keys = {"federation.alpha": 0.1} if split == "dirichlet" else {}
        make_run(str(number), choices={"federation": split, "selector": f"s{number}"}, keys=keys)
    (note,) = notes(tmp_path)
    assert note.startswith("The methods run on different splits: iid of 4 clients (")
    assert "dirichlet (alpha=0.1) of 4 clients (" in note


def test_all_data_in_one_place_are_of_no_split(make_run: Callable[..., Path], tmp_path: Path):
    for number, training in enumerate(("federated", "central")):
        keys = {"scenario.training": training, **({"federation.alpha": 0.1} if training == "central" else {})}
        split = "dirichlet" if training == "central" else "iid"
        make_run(str(number), choices={"federation": split, "selector": f"s{number}"}, keys=keys)
    assert not [note for note in notes(tmp_path) if "splits" in note]


def test_settings_that_did_nothing_are_told_on_the_page_too(make_run: Callable[..., Path], tmp_path: Path):
    for number, attack in enumerate(("alie", "ipm", "none")):
        folder = make_run(str(number), choices={"attack": attack})
        path, note = folder / "summary.json", f"attack={attack} does nothing: nobody is malicious"
        said = {"without_effect": [note, "so it is"] if number < 2 else None}
        path.write_text(json.dumps({**json.loads(path.read_text()), **said}))
    assert notes(tmp_path) == [
        "attack=alie: attack=alie does nothing: nobody is malicious.",
        "attack=alie; attack=ipm: so it is.",
        "attack=ipm: attack=ipm does nothing: nobody is malicious.",
    ]


def test_steps_of_another_kind_and_number(make_run: Callable[..., Path], tmp_path: Path):
    make_run("0", choices={"selector": "random"}, keys={"rounds": 4})
    make_run("1", choices={"selector": "random", "pacing": "buffered"}, keys={"rounds": 40})
    fewer, kind = notes(tmp_path)
    assert fewer.startswith("The methods train for unequal numbers of rounds: 4 (")
    assert kind.startswith("A round is not the same for all methods: pacing=synchronous (")
    assert kind.endswith("so compare by selections or by simulated seconds and not round by round.")


def test_on_a_shared_link_synchronous_seconds_do_not_compare_with_others(make_run: Callable[..., Path], tmp_path: Path):
    keys = {"fleet.link": "shared"}
    make_run("0", choices={"selector": "random"}, keys=keys)
    make_run("1", choices={"selector": "random", "pacing": "buffered"}, keys=keys, metrics={"pacing.in_flight": 3.0})
    kind, note = notes(tmp_path)
    assert kind.endswith("so compare by selections and not round by round.")
    assert note.startswith("Simulated seconds do not compare: on a shared link (fleet.link=shared) clients of a sync")
    assert note.endswith("run both with fleet.link=own.")


def test_validation_scores_of_two_kinds(make_run: Callable[..., Path], tmp_path: Path):
    for name, keys in {
        "s0": {"evaluation.validation": True, "evaluation.validation_at": "clients"},
        "s1": {"evaluation.validation": True},
        "s2": {},
    }.items():
        make_run(name, choices={"selector": name}, keys=keys)
    told = [note for note in notes(tmp_path) if note.startswith("Validation scores are of two kinds: ")]
    assert len(told) == 1
    assert "clients' models on their own examples (" in told[0]
    assert told[0].endswith("They do not compare.")
    assert "s2" not in told[0]


def test_of_many_methods_some_are_named(make_run: Callable[..., Path], tmp_path: Path):
    for number in range(7):
        make_run(str(number), choices={"selector": f"s{number}"}, keys={"rounds": 1 if number else 2})
    assert (
        notes(tmp_path)[0] == "The methods train for unequal numbers of rounds: 2 (s0), 1 (s1; s2; s3; s4; and 2 more)."
    )


def test_other_data_do_not_compare(make_run: Callable[..., Path], tmp_path: Path):
    for number, digest in enumerate(("ab12345", "ab12345", "cd67890")):
        choices = {"selector": f"s{number}", "dataset": "digits"}
        folder = make_run(str(number), choices=choices)
        summary = json.loads((folder / "summary.json").read_text())
        (folder / "summary.json").write_text(json.dumps({**summary, "data_sha256": digest}))
    assert notes(tmp_path) == [
        "The methods are of different data: digits ab1234 (s0; s1), digits cd6789 (s2). Their numbers do not compare."
    ]


def test_personal_measures_are_told_apart(make_run: Callable[..., Path], tmp_path: Path):
    make_run("0", keys={"evaluation.personal_fraction": 0.2})
    (note,) = notes(tmp_path)
    assert note.startswith("Test measures are of the global model")
    assert "judge personal methods by these" in note
