"""One cluster is the plain run: the same models and the same columns, bit by bit, whatever the other parts are."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fedexp.core import part as spec
from fedexp.run.run import run
from fedexp.run.tables import TIMINGS
from fedexp.simulation.build_world import build_world
from fedexp.simulation.rounds import run_rounds
from fedexp.training.workers.pool import WorkerPool

Tiny = Callable[..., dict[str, Any]]
PUBLIC = ("scenario.public_fraction=0.2", "rounds=4")
ONE = ("clustering=output_similarity", "clustering.threshold=inf")
SIMULATED = ("fleet=simulated", "fleet.dropout=0.4")
PARTS = {
    "fedavg": (),
    "fedprox": ("algorithm=fedprox",),
    "scaffold": ("local=scaffold",),
    "fedplus": ("local=fedplus",),
    "personal_layer": ("local=personal_layer", "evaluation.personal_fraction=0.3"),
    "momentum": ("server_optimizer=momentum", "server_optimizer.lr=0.5"),
    "adam": ("server_optimizer=adam",),
    "krum": ("aggregator=krum", "scenario.byzantine=1", "attack=sign_flip", "scenario.malicious=2"),
    "centered_clipping": ("aggregator=centered_clipping", "pre_aggregation=bucketing", "attack=alie"),
    "geometric_median": ("aggregator=geometric_median", "pre_aggregation=nearest_neighbours"),
    "zeno": ("aggregator=zeno",),
    "trimmed_mean": ("aggregator=trimmed_mean", "scenario.byzantine=1"),
    "secure_mean": ("aggregator=secure_mean", "aggregator.dropout=0.3"),
    "buffers": ("model=complex_cnn", "model.buffers=local", "dataset.shape=[1,8,8]"),
    "nobody": ("selector=fedcs", *SIMULATED, "selector.round_s=0.001", "aggregator=krum"),
    "some": (*SIMULATED, "scenario.participants=1", "server_optimizer=momentum", "aggregator=multi_krum"),
    "stacked": ("engine=stacked", "federation=dirichlet", "federation.alpha=0.1"),
}


def cells(folder: Path) -> pd.DataFrame:
    table = pd.read_csv(folder / "metrics.csv", dtype=str, keep_default_na=False)
    return table.drop(columns=list(TIMINGS), errors="ignore")


@pytest.mark.parametrize("part", PARTS)
def test_it_is_the_plain_run(tiny: Tiny, part: str, tmp_path: Path):
    words = (*PUBLIC, *PARTS[part])
    run(tiny(*words), tmp_path / "plain")
    run(tiny(*words, *ONE), tmp_path / "one")
    plain, one = cells(tmp_path / "plain"), cells(tmp_path / "one")
    own = [name for name in one if name.startswith(("clustering.", "clusters."))]
    sent = ["mb_down", "mb_up"]
    pd.testing.assert_frame_equal(one.drop(columns=[*own, *sent]), plain.drop(columns=sent))
    for name in sent:  # newcomers tune a model, which goes down and comes up once more
        tuned = one["clustering.mb"].astype(float) / 2
        assert (one[name].astype(float) - tuned).tolist() == pytest.approx(plain[name].astype(float).tolist())
    assert set(one["clustering.clusters"]) == {"1"}
    assert (tmp_path / "one" / "clients.csv").read_bytes() == (tmp_path / "plain" / "clients.csv").read_bytes()


@pytest.mark.law("clustering=output_similarity", "an infinite threshold is a run without clusters, to the byte")
def test_its_models_are_the_plain_run_s(tiny: Tiny):
    states = []
    for more in ((), ONE):
        world = build_world(spec.build(tiny(*PUBLIC, "server_optimizer=momentum", *more)), None, WorkerPool())
        states.append([state for state, _, _ in run_rounds(world.exp, world, world.initial_state())])
    for plain, one in zip(*states, strict=True):
        (only,), (together, cluster) = plain.models, one.models
        assert only.flat.equal(cluster.flat)
        assert only.flat.equal(together.flat)
        velocity = [
            state.memory["server_optimizer"][number]["velocity"] for state, number in ((plain, "0"), (one, "1"))
        ]
        assert velocity[0].equal(velocity[1])
        assert "0" not in one.memory["server_optimizer"]
