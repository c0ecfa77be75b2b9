"""The study of Shapley values: its page is what its figures make, and its measures are right where they are known."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from script_modules import imported

from fedexp.maths.shapley.game.utilities import all_coalitions

FOLDER = Path(__file__).parents[1] / "scripts" / "studies" / "shapley"


@pytest.fixture
def study() -> Iterator[list[ModuleType]]:
    """Its two scripts."""
    with imported(FOLDER, "compare", "page") as found:
        yield found


def test_the_page_is_made_again(study: list[ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "argv", ["page.py", str(tmp_path)])
    study[1].main()
    assert (tmp_path / "README.md").read_text() == (FOLDER / "README.md").read_text()
    assert (tmp_path / "estimators.png").read_bytes().startswith(b"\x89PNG")


def test_an_additive_round_by_hand(study: list[ModuleType]):
    """Utilities 1, 2, 3, 4 that add up: whoever samples finds them without error, at the cost of what it asks for."""
    compare, _ = study
    utilities = all_coalitions(4) @ np.array([1.0, 2.0, 3.0, 4.0])
    table = compare.Table(utilities, utilities, np.array([250, 750]))
    found = compare.measured(table, np.full(4, 0.25), "gtg", 14)
    assert found["error"] < 1e-9
    assert found["half"] == 1.0
    assert found["cost"] == found["coalitions"] <= 14


def test_the_cost_counts_examples(study: list[ModuleType]):
    compare, _ = study
    table = compare.Table(np.arange(8.0), 2 * np.arange(8.0), np.array([250, 750]))
    members = np.array([[1, 0, 0], [1, 1, 0]], dtype=bool)
    assert table(members, range(250)).tolist() == [1.0, 3.0]
    assert table(members, range(250, 1000)).tolist() == [2.0, 6.0]
    assert table(members, range(1000)).tolist() == [1.75, 5.25]
    assert table.cost == pytest.approx(2 * (0.25 + 0.75 + 1))
