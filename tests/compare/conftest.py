"""Run folders of two or more methods over several seeds."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from report.conftest import make_run  # noqa: F401

from fedexp.report import runs


@pytest.fixture
def method(make_run, tmp_path) -> Callable[..., Path]:  # noqa: F811
    """A folder with a run a seed of one selector; `finals` are their last accuracies, `summary` joins theirs."""

    def make(selector: str, finals: Sequence[float], name: str = "", summary: dict | None = None, **given: Any) -> Path:
        for seed, last in enumerate(finals):
            accuracy, choices = (0.4, 0.6, 0.7, last), {"selector": selector}
            folder = make_run(f"{name or selector}/{seed}", seed=seed, accuracy=accuracy, choices=choices, **given)
            told = {"data_sha256": "d", "split_sha256": f"s{seed}", **(summary or {})}
            known = json.loads((folder / "summary.json").read_text())
            (folder / "summary.json").write_text(json.dumps(known | told))
        return tmp_path / (name or selector)

    return make


@pytest.fixture
def read() -> Callable[..., list[runs.Run]]:
    """The runs below folders."""
    return lambda *folders: runs.collect(folders)[0]
