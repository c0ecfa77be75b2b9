"""Tiny runs against stored metrics: a change that should not change results must show it.

`FEDEXP_GOLDEN=write pytest tests/run/test_golden.py` stores them anew; the pull request says why.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fedexp.run.run import run
from fedexp.run.tables import TIMINGS

GOLDEN = Path(__file__).parents[1] / "golden"
RUNS = {
    "fedavg": ("rounds=4",),
    "adam_momentum_digits": ("dataset=digits", "local=adam", "server_optimizer=momentum", "rounds=3"),
    "fedprox_dirichlet": ("algorithm=fedprox", "federation=dirichlet", "federation.alpha=0.5", "fleet=simulated"),
}


@pytest.mark.parametrize("name", RUNS)
def test_nothing_has_moved(tiny: Callable[..., dict[str, Any]], name: str, tmp_path: Path):
    run(tiny(*RUNS[name]), tmp_path)
    table = pd.read_csv(tmp_path / "metrics.csv").drop(columns=list(TIMINGS), errors="ignore")
    stored = GOLDEN / f"{name}.csv"
    if os.environ.get("FEDEXP_GOLDEN") == "write":
        table.to_csv(stored, index=False)
    pd.testing.assert_frame_equal(table, pd.read_csv(stored), rtol=1e-4)
