"""A run that goes on in another environment: it says so, and `verify` does not call it false."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from kept import kept_bytes

from fedexp.cli import main
from fedexp.config import saved_config
from fedexp.run import environment
from fedexp.simulation.build_world import build_experiment
from fedexp.training.engine import contract

WORDS = (
    "dataset=synthetic",
    "dataset.train_size=300",
    "dataset.test_size=100",
    "scenario.clients=6",
    "scenario.participants=4",
    "rounds=4",
    "checkpoint_s=0",
    "pictures=false",
)


def start(run: Path, *words: str) -> int:
    return main(["run", *WORDS, *words, f"hydra.run.dir={run}"])


def interrupt(run: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    """Begins a run that ends after its second round."""
    from fedexp.run.logbook import Logbook

    record = Logbook.record

    def record_two(self: Logbook, *args: object) -> object:
        line = record(self, *args)  # pyright: ignore[reportArgumentType]
        if self.state.round == 2:
            raise RuntimeError
        return line

    with monkeypatch.context() as patch:
        patch.setattr(Logbook, "record", record_two)
        assert start(run, *words) == 1


def test_other_instructions_are_noted_and_no_forgery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    run = tmp_path / "run"
    interrupt(run, monkeypatch, "engine=loop", "engine.workers=1")
    before = environment.instructions()
    with monkeypatch.context() as patch:
        patch.setattr(environment, "instructions", lambda: "AVX9")
        assert main(["resume", str(run)]) == 0
    note = f"instructions {before} then, AVX9 now: the rounds to come may differ in bits from an uninterrupted run's"
    assert note in " ".join(capsys.readouterr().out.split())
    saved = torch.load(run / "state.pt", weights_only=True)
    assert saved["surroundings"]["instructions"] == "AVX9"
    assert [earlier["instructions"] for earlier in saved["earlier_surroundings"]] == [before]
    (run / "state.previous.pt").unlink()
    for instructions in (before, "AVX9"):  # neither made all rounds
        monkeypatch.setattr(environment, "instructions", lambda instructions=instructions: instructions)
        assert main(["verify", str(run)]) == 3
        assert "may differ: instructions" in capsys.readouterr().out


def test_nothing_is_noted_in_the_same_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    run = tmp_path / "run"
    interrupt(run, monkeypatch, "engine=loop", "engine.workers=1")
    assert main(["resume", str(run)]) == 0
    assert "may differ" not in capsys.readouterr().out
    assert torch.load(run / "state.pt", weights_only=True)["earlier_surroundings"] == []
    assert main(["verify", str(run)]) == 0


def test_stacked_rows_go_on_with_as_many_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where workers are as many as cores are free, another number of cores changes no bit of a run."""
    monkeypatch.setattr(contract, "usable_cores", lambda: 2)
    start(tmp_path / "whole", "engine=stacked")
    interrupt(tmp_path / "run", monkeypatch, "engine=stacked")
    monkeypatch.setattr(contract, "usable_cores", lambda: 3)
    assert main(["resume", str(tmp_path / "run")]) == 0
    assert torch.load(tmp_path / "run" / "state.pt", weights_only=True)["surroundings"]["workers"] == "2"
    exp = build_experiment({**saved_config.read_config(tmp_path / "run")})
    assert environment.keep_workers(exp, [{"workers": "2"}]).engine.workers == 2
    explicit = replace(exp, engine=replace(exp.engine, workers=1))
    assert environment.keep_workers(explicit, [{"workers": "2"}]).engine.workers == 1
    assert environment.keep_workers(exp, [{}]).engine.workers == "auto"
    assert kept_bytes(tmp_path / "run") == kept_bytes(tmp_path / "whole")
    assert (tmp_path / "run" / "digests.csv").read_bytes() == (tmp_path / "whole" / "digests.csv").read_bytes()
