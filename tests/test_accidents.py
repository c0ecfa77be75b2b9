"""What happens to a run is told in one line, and the run goes on to the same bytes: `scripts/accidents.py` in part."""

from pathlib import Path

import pytest

from scripts import accidents, kills

SLOW = ("frozen worker", "a tracker that hangs")  # seconds are waited for; they have tests of their own


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> kills.Whole:
    """A run to which nothing happened; what copies would import is imported here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("first"))
        assert kills.first() == 0
    return kills.whole("local=sgd", tmp_path_factory.mktemp("known") / "whole")


@pytest.mark.parametrize(
    "accident", [one for one in accidents.ACCIDENTS if one.name not in SLOW], ids=lambda one: one.name
)
def test_told_in_one_line_and_resumed_to_the_same_bytes(
    accident: accidents.Accident, known: kills.Whole, tmp_path: Path
):
    row, right = accidents.tried(accident, known, tmp_path / "place")
    assert right, row
    if row[1].startswith("skipped"):
        pytest.skip(row[1])


def test_there_are_twelve():
    assert len({one.name for one in accidents.ACCIDENTS}) == len(accidents.ACCIDENTS) == 12


def test_what_is_told_otherwise_is_not_right(known: kills.Whole, tmp_path: Path):
    quiet = accidents.Accident("quiet", lambda place: (0, ["fedexp: something"]), "", 0)
    row, right = accidents.tried(quiet, known, tmp_path / "place")
    assert row == ["quiet", "fedexp: something", "0", "yes"]
    assert not right
