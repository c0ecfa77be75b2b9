"""A run goes on with the data, the clients and the files that it began with, or not at all."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fedexp.core.errors import ConfigError
from fedexp.run.run import complete
from fedexp.run.state import checkpoint

Tiny = Callable[..., dict[str, Any]]
FLEET = ("fleet=simulated", "algorithm=fedbuff", "pacing.clients=3", "pacing.buffer=2")


def write_data(file: Path, shift: float) -> None:
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {
        f"x_{name}": rng.normal(size=(40, 5)).astype(np.float32) + shift for name in ("train", "test")
    }
    arrays |= {f"y_{name}": np.arange(40) % 4 for name in ("train", "test")}
    np.savez(file, **arrays)


def write_owners(file: Path, shift: float) -> None:
    file.write_text("".join(f"{line}\n" for line in ("client", *((np.arange(40) + int(shift) * 3) % 6).tolist())))


def write_trace(file: Path, shift: float) -> None:
    """Only a line of a later round differs."""
    lines = [f"{client},1,1,10\n{client},50,1,{10 + shift}" for client in range(6)]
    file.write_text("\n".join(["client,round,bandwidth_mbit,compute_samples_per_s", *lines]) + "\n")


def write_windows(file: Path, shift: float) -> None:
    file.write_text("client,from_s,to_s\n" + "".join(f"{client},0,{1e6 + shift}\n" for client in range(6)))


CASES = {
    "data": (write_data, ("dataset=npz", "dataset.path={}"), "the data of dataset=npz"),
    "owners": (
        write_owners,
        ("dataset=npz", "dataset.path={data}", "federation=file", "federation.path={}", "federation.column=client"),
        "who holds which examples by federation=file and the file of federation.path",
    ),
    "trace": (write_trace, (*FLEET, "fleet.trace={}"), "the file of fleet.trace"),
    "windows": (
        write_windows,
        (*FLEET, "availability=trace", "availability.path={}"),
        "the file of availability.path",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_run_goes_on_with_what_it_began_with(tiny: Tiny, tmp_path: Path, case: str):
    write, words, subject = CASES[case]
    file, data = tmp_path / ("input.npz" if case == "data" else "input.csv"), tmp_path / "data.npz"
    write_data(data, 0)
    write(file, 0)
    config = tiny(*(word.format(file, data=data) for word in words), "rounds=4", "checkpoint_s=0")
    run, whole = tmp_path / "run", tmp_path / "whole"
    run.mkdir()
    whole.mkdir()
    complete(config, whole)

    def stop(line: dict[str, Any]) -> None:
        if line["round"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        complete(config, run, watch=stop)
    write(file, 1)
    before = (run / "metrics.csv").read_bytes()
    with pytest.raises(ConfigError, match=f"cannot go on, since {subject} changed after the run began; put"):
        complete(config, run)
    assert (run / "metrics.csv").read_bytes() == before
    write(file, 0)
    complete(config, run)
    ends = [checkpoint.read(folder / "state.pt", config, torch.device("cpu")) for folder in (run, whole)]
    models = [end.state.models[0].flat for end in ends if end]
    assert torch.equal(*models)
