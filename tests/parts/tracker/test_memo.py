"""What has arrived is remembered whole or not at all."""

from dataclasses import replace
from pathlib import Path

import pytest

from fedexp.parts.tracker import memo


def test_a_memo_comes_back_as_it_was(tmp_path: Path):
    known = replace(memo.load(tmp_path, "mlflow"), run="r", place="p", round=3, files=True)
    memo.save(tmp_path, known)
    assert memo.load(tmp_path, "mlflow") == known


@pytest.mark.parametrize("content", ["", "{", "[]", '{"tracker": "mlflow"}'])
def test_a_damaged_one_is_as_good_as_none(tmp_path: Path, content: str):
    (tmp_path / memo.NAME).write_text(content)
    found = memo.load(tmp_path, "mlflow")
    assert (found.run, found.round, found.files) == ("", 0, False)


def test_another_tracker_begins_anew(tmp_path: Path):
    known = replace(memo.load(tmp_path, "mlflow"), round=3)
    memo.save(tmp_path, known)
    other = memo.load(tmp_path, "tensorboard")
    assert other.round == 0
    assert other.token != known.token


def test_the_lock_is_one_process_s(tmp_path: Path):
    with (
        memo.lock_tracker(tmp_path, 1),
        pytest.raises(TimeoutError, match="held by another process"),
        memo.lock_tracker(tmp_path, 0.01),
    ):
        pass
    with memo.lock_tracker(tmp_path, 0.01):
        pass
