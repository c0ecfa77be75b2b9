"""Runs that are killed anywhere end as those that nobody killed; `scripts/kills.py` does it three hundred times."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch
from composing import config

from fedexp.core import part as spec
from fedexp.simulation.setup.compatibility import refuse
from scripts import kills

OPTIONS = ("clustering=kmeans_updates",)


@pytest.fixture(scope="module", autouse=True)
def _ready(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What copies would import is imported here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("first"))
        assert kills.first() == 0


def test_killed_in_every_way_a_run_ends_with_the_same_results(tmp_path: Path):
    told: list[str] = []
    plan = kills.planned(10, 0, OPTIONS)
    assert {kill.kind for kill in plan} == {*kills.KINDS}
    assert {kill.workers for kill in plan} == {1, 2}
    short, late, inside = kills.tried(plan, tmp_path, told.append)
    assert told == []
    assert short == 0
    assert late >= 5
    assert inside >= 2


def test_every_option_meets_every_kind_of_kill():
    plan = kills.planned(300, 0, [option for option in kills.OPTIONS if option.partition("=")[0] in kills.GROUPS])
    assert len(plan) == 300
    assert len({(kill.option, kill.kind) for kill in plan}) > 100
    assert {kind: sum(kill.kind == kind for kill in plan) for kind in kills.KINDS} == {
        "write": 60,
        "round": 120,
        "any": 60,
        "worker": 60,
    }


def test_half_of_them_have_clients_come_and_go_and_all_can_be_begun(tmp_path: Path):
    options = [option for option in kills.OPTIONS if option.partition("=")[0] in kills.GROUPS]
    drawn = {kill.option for kill in kills.planned(300, 0, options)}
    assert {*options} <= {word for option in drawn for word in option.split()}
    with_law = {option for option in drawn if any(law in option.split() for law in kills.LAWS)}
    assert 0.4 * len(drawn) < len(with_law) < 0.8 * len(drawn)
    assert {law for option in with_law for law in option.split() if law in kills.LAWS} == {*kills.LAWS}
    (tmp_path / "windows.csv").write_text(kills.WINDOWS)
    for option in drawn:
        path = (f"availability.path={tmp_path}/windows.csv",) if kills.TRACE in option.split() else ()
        refuse(spec.build(config(*kills.needed(*option.split()), *path)))


def test_a_trace_is_written_for_the_run(tmp_path: Path):
    known = kills.whole("pacing=buffered availability=trace", tmp_path / "one")
    present = pd.read_csv(known.folder / "metrics.csv")["availability.present"]
    assert len(present) == kills.ROUNDS
    assert len({*present.tolist()}) > 1


def test_what_differs_is_found(tmp_path: Path):
    known = kills.whole("local=sgd", tmp_path / "one").folder
    other = tmp_path / "other"
    shutil.copytree(known, other)
    assert kills.differences(known, other) == []
    for name in ("metrics.csv", "clients.csv", "digests.csv", "summary.json"):
        text = (other / name).read_text()
        (other / name).write_text(text.replace("1", "2"))
    state = torch.load(other / "state.pt", weights_only=True)
    state["models"][0][0][0] += 1e-7
    torch.save(state, other / "state.pt")
    (other / "states" / "000002.pt").unlink()
    assert kills.differences(known, other) == [
        "only one has states/000002.pt",
        *(f"{name} differs" for name in ("metrics.csv", "clients.csv", "digests.csv", "summary.json")),
        "the models of state.pt differ",
    ]
