"""Two lines of a round: what counts as the same."""

import pytest
import torch

from fedexp.core.values import Layout, Weights
from fedexp.run.digests import digest
from fedexp.run.environment import changed_surroundings
from fedexp.verify.comparison import (
    cells_agree,
    differing_columns,
    line_difference,
    spans,
    values_agree,
)
from fedexp.verify.states import leaves


@pytest.mark.parametrize(
    ("written", "recomputed", "tolerance", "same"),
    [
        ("0.5", "0.5", 0.0, True),
        ("0.5", "0.5000001", 0.0, False),
        ("0.50", "0.5", 0.0, True),  # a spreadsheet wrote it
        ("0.5", "0.5000001", 1e-3, True),
        ("0.5", "0.502", 1e-3, False),
        ("2000.0", "2001.0", 1e-3, True),
        ("2000", "2001", 1e-3, False),  # counts are equal or not
        ("", "0.0", 1e-3, False),
        ("nan", "0.0", 1e-3, False),
    ],
)
def test_cells(written: str, recomputed: str, tolerance: float, same: bool):
    assert cells_agree(written, recomputed, tolerance) is same


def test_clocks_do_not_count():
    written = {"round": "1", "host_s": "1.0", "test_loss": "", "train_loss": "2.0"}
    recomputed = {"round": "1", "host_s": "9.0", "test_loss": "0.5", "train_loss": "2.5"}
    assert line_difference("a.csv", written, recomputed, 0.0, blank=True) == "train_loss is 2.0 in a.csv, 2.5 now"
    assert line_difference("a.csv", written, recomputed, 0.0) == "test_loss is empty in a.csv, 0.5 now"


def test_columns():
    assert differing_columns("a.csv", ["x"], ["x", "y"]) == "a.csv has no column y"
    assert differing_columns("a.csv", ["x", "z"], ["x"]) == "a.csv has a column z, which no such run writes"
    assert line_difference("a.csv", {"client": "7", "z": "3"}, {"client": "7"}, 0.0) == (
        "z of client 7 is 3 in a.csv, empty now"
    )


def test_values_of_a_memory():
    assert values_agree(torch.tensor([1.0, torch.nan]), torch.tensor([1.0, torch.nan]), 0.0)
    assert not values_agree(torch.tensor([1.0]), torch.tensor([1.0001]), 0.0)
    assert values_agree(torch.tensor([1.0]), torch.tensor([1.0001]), 1e-3)
    assert not values_agree(torch.tensor([1]), torch.tensor([2]), 1e-3)
    assert not values_agree(1, 1.0, 1e-3)
    assert dict(leaves({"selector": {"columns": {"shapley_s": 1.0, "sure": 0.5}, "seen": (1, "a")}})) == {
        "selector.columns.sure": 0.5, "selector.seen.0": 1, "selector.seen.1": "a",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("numbers", "text"), [([4], "4"), ([1, 2], "1, 2"), ([1, 2, 3, 5, 7, 8], "1-3, 5, 7, 8"), ([2, 9], "2, 9")]
)
def test_spans(numbers: list[int], text: str):
    assert spans(numbers) == text


def test_surroundings():
    now = {"engine": "loop", "torch": "2.9"}
    assert changed_surroundings([now, now], now) is None
    assert changed_surroundings([{"torch": "2.9"}], now) is None  # what is not known does not count
    assert changed_surroundings([now, {"torch": "2.8"}, {"torch": "2.8"}], now) == "torch 2.8 then, 2.9 now"
    assert changed_surroundings([], now) == "the folder does not say where it was made"


def test_the_sign_of_zero_and_the_split_into_models_in_a_digest():
    def model(*values: float) -> Weights:
        return Weights(torch.tensor(values), Layout(("w",), ((len(values),),), 1))

    assert digest([model(0.0, 1.0)]) == digest([model(-0.0, 1.0)])
    assert digest([model(0.0, 1.0)]) != digest([model(1.0, 0.0)])
    assert digest([model(0.0, 1.0)]) != digest([model(0.0), model(1.0)])
    assert len(digest([model(0.0)])) == 32
