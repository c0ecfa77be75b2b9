"""Points that run together, each beside the same run on its own."""

from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from pandas.testing import assert_frame_equal

from fedexp.config.trust import Trust
from fedexp.run import run as execution
from fedexp.run.tables import TIMINGS
from fedexp.sweep.launchers.contract import PointEnd
from fedexp.sweep.launchers.together import Together
from fedexp.sweep.worker import live

Config = dict[str, Any]


def together(folder: Path, configs: list[Config], **launcher: Any) -> list[PointEnd]:
    """How the runs of these configs end that the launcher makes in `folder / number`, in the order of the configs."""
    places = [folder / str(number) for number in range(len(configs))]
    for place, config in zip(places, configs, strict=True):
        (place / ".hydra").mkdir(parents=True, exist_ok=True)
        (place / ".hydra" / "config.yaml").write_text(yaml.safe_dump(config))
    ends = {
        end.folder: end
        for end in Together(**launcher).launch(iter(places), partial(live, share=1, trust=Trust(composed=True)))
    }
    return [ends[place] for place in places]


def alone(folder: Path, configs: list[Config]) -> None:
    """The same runs, one after another."""
    for number, config in enumerate(configs):
        execution.run(config, folder / str(number))


def metrics(run: Path) -> pd.DataFrame:
    table = pd.read_csv(run / "metrics.csv")
    return table.drop(columns=[name for name in TIMINGS if name in table])


def same_bytes(one: Path, other: Path) -> None:
    assert_frame_equal(metrics(one), metrics(other), check_exact=True)
    for table in ("clients.csv", "digests.csv"):
        assert (one / table).read_bytes() == (other / table).read_bytes()


def close(one: Path, other: Path) -> None:
    assert_frame_equal(metrics(one), metrics(other), rtol=2e-4, atol=2e-5)
    assert_frame_equal(pd.read_csv(one / "clients.csv"), pd.read_csv(other / "clients.csv"), rtol=2e-4, atol=2e-5)
