"""What a run says of metrics that are undefined, and of a model that gives one answer."""

from dataclasses import replace

import pandas as pd
import torch
from worlds import Tiny, world_of

from fedexp.core.values import State, Weights
from fedexp.run.metric_notes import UndefinedMetrics, describe_constant_answer, describe_undefined_clients
from fedexp.simulation.world import World

NAN = float("nan")


def test_each_column_is_told_once():
    notes = UndefinedMetrics(("accuracy", "auroc", "mine:f2", "class_recall"))
    assert notes.describe({"round": 1, "test_accuracy": 0.5, "test_auroc": None, "test_recall.0": NAN}) == []
    row = {"round": 2, "test_accuracy": 0.5, "test_auroc": NAN, "test_f2": NAN, "validation_auroc": 0.5}
    first, second = notes.describe(row)
    said = "is undefined in round 2, so its cell is empty"
    assert first == f"test_auroc {said}: the data, or the answers, are all alike; told once"
    assert second == f"test_f2 {said}: mine:f2 returned NaN; told once"
    assert notes.describe({**row, "round": 3}) == []
    assert len(notes.describe({"round": 3, "validation_f2": NAN})) == 1


def test_answers_that_are_no_numbers_are_the_reason():
    notes = UndefinedMetrics(("brier", "auroc"))
    row = {"round": 2, "test_loss": NAN, "test_brier": NAN, "validation_loss": 0.5, "validation_auroc": NAN}
    first, second = notes.describe(row)
    assert "the model's answers are no numbers" in first
    assert "all alike" in second


def with_labels(tiny: Tiny, counts: list[int]) -> World:
    """A world with so many test examples of each class."""
    world = world_of(tiny(f"dataset.classes={len(counts)}", f"dataset.test_size={sum(counts)}"))
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    world.test.y.copy_(labels)
    return world


def answering(world: World, label: int) -> State:
    """A model that names one class whatever it sees."""
    row = torch.zeros(world.layout.size)
    row[-len(world.class_names) + label] = 1.0
    return replace(world.initial_state(), models=(Weights(row, world.layout),))


def note(world: World, state: State, accuracy: float | None) -> str | None:
    return describe_constant_answer(world, state, pd.DataFrame({"test_accuracy": [0.1, accuracy]}))


def test_an_accuracy_that_is_the_share_of_the_largest_class_is_told(tiny: Tiny):
    world = with_labels(tiny, [18, 1])
    said = "accuracy 0.9474 is the share of the largest class (0)"
    assert note(world, answering(world, 0), 18 / 19) == said
    assert note(world, world.initial_state(), 17 / 19) == (
        "accuracy 0.8947 is below 0.9474, the share of the largest class (0)"
    )
    assert note(world, world.initial_state(), 1.0) is None
    assert note(world, world.initial_state(), None) is None
    assert describe_constant_answer(world, world.initial_state(), pd.DataFrame({"test_auroc": [1.0]})) is None


def test_the_share_of_another_class_is_told_if_it_is_the_only_answer(tiny: Tiny):
    world = with_labels(tiny, [10, 6, 4])
    said = "accuracy 0.3 is the share of the only class that the model answers (1)"
    assert note(world, answering(world, 1), 6 / 20) == said
    answers = world.scorer.logits(world.first, world.test.inputs(slice(None))).argmax(dim=1)
    assert len(answers.unique()) > 1
    assert str(note(world, world.initial_state(), 6 / 20)).startswith("accuracy 0.3 is below 0.5, the share of")


def test_of_a_text_it_is_the_share_of_the_most_frequent_token(tiny: Tiny):
    words = ("dataset=text", "dataset.length=5", "federation=subject", "model=char_lstm", "model.hidden=4")
    world = world_of(tiny(*words, "loss=next_token"))
    tokens = world.test.y[world.test.y >= 0]
    counts = tokens.bincount(minlength=len(world.class_names))
    most = int(counts.argmax())
    name = world.class_names[most]
    said = f"is the share of the most frequent token ({name if name.strip() else repr(name)})"
    share = float(counts[most]) / len(tokens)
    assert note(world, world.initial_state(), share) == f"accuracy {share:.4g} {said}"
    assert note(world, world.initial_state(), 0.987) is None


def test_clients_without_a_score_are_named():
    lines = [
        {"client": 0, "name": "Aachen", "metric": "auroc", "global": 0.5},
        {"client": 1, "name": "Bonn", "metric": "auroc", "global": float("nan")},
    ]
    assert describe_undefined_clients(lines[:1]) is None
    assert describe_undefined_clients([{"client": 0, "metric": "auroc", "global": None}]) is None, "there is no model"
    assert describe_undefined_clients(lines) == (
        "auroc is undefined at 1 of 2 clients (Bonn): means and tenths over clients leave them out"
    )
    many = [{"client": number, "metric": "auroc", "global": float("nan")} for number in range(7)]
    assert "(0, 1, 2, 3, 4 and 2 more)" in (describe_undefined_clients(many) or "")
