"""Standing in for runs, starting processes and reading complaints: what the tests of the command line share."""

import subprocess
import sys
from pathlib import Path

import pandas as pd

from fedexp.run import run as execution
from fedexp.run.tables import METRICS


class Recorder:
    """Stands in for execution.run and complete: remembers what it was given, or ends as told."""

    def __init__(self, error: BaseException | None = None, at_seed: int = 0) -> None:
        self.error, self.at_seed = error, at_seed
        self.calls: list[tuple[dict, Path]] = []

    def __call__(self, config: dict, folder: Path, *_: object) -> None:
        self.calls.append((config, folder))
        (folder / "metrics.csv").touch()
        if self.error is not None and config["seed"] == self.at_seed:
            raise self.error
        frame = pd.DataFrame({"round": range(1, config["rounds"] + 1)}).reindex(columns=METRICS)
        frame.assign(participants=0, examples=0).to_csv(folder / "metrics.csv", index=False)
        (folder / "summary.json").write_text("{}")


def ending_with(monkeypatch, error, at_seed=0):
    recorder = Recorder(error, at_seed)
    for name in ("run", "complete"):
        monkeypatch.setattr(execution, name, recorder)
    return recorder


def python(*words, **options):
    command = [sys.executable, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


def complaint(capsys):
    """The only line on stderr."""
    text = capsys.readouterr().err
    assert text.count("\n") == 1, text
    return text.rstrip("\n")
