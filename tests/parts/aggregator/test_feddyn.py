"""The server's half of FedDyn is tested with its clients, in tests/parts/local/test_feddyn.py; here what it refuses."""

from pathlib import Path

import pytest
from worlds import Tiny, rounds_with_rows, world_of

from fedexp.cli import main
from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.parts.aggregator.feddyn import DynamicMean
from fedexp.parts.dataset.synthetic import Synthetic
from fedexp.simulation.setup import compatibility


def test_a_negative_alpha_is_refused():
    with pytest.raises(ConfigError, match="alpha must be a number >= 0, got -1"):
        DynamicMean(alpha=-1)


def test_uploads_that_began_with_older_models_are_refused(tiny: Tiny):
    words = ("algorithm=feddyn", "pacing=buffered", "pacing.clients=3", "pacing.buffer=1")
    with pytest.raises(ConfigError, match="remembers with the clients how far each went from the model of the round"):
        compatibility.refuse(spec.build(tiny(*words)))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("aggregator=feddyn",),
            "aggregator=feddyn corrects the mean by what clients remember, but local=sgd has them remember nothing for "
            "it; use local=feddyn, or algorithm=feddyn",
        ),
        (
            ("aggregator=feddyn", "aggregator.alpha=0"),
            "aggregator=feddyn corrects the mean by what clients remember, but local=sgd has them remember nothing for "
            "it; use local=feddyn, or algorithm=feddyn",
        ),
        (
            ("local=feddyn",),
            "local=feddyn has clients remember what the server corrects their mean by, but aggregator=fedavg does not; "
            "use aggregator=feddyn, or algorithm=feddyn",
        ),
        (
            ("local=feddyn", "aggregator=feddyn", "local.alpha=0.1"),
            "aggregator.alpha must be that of local=feddyn, local.alpha=0.1, got 0.01; set both to one value, or "
            "local.alpha alone with algorithm=feddyn",
        ),
        (
            ("algorithm=feddyn", "aggregator.alpha=0"),
            "aggregator.alpha must be that of local=feddyn, local.alpha=0.01, got 0; set both to one value, or "
            "local.alpha alone with algorithm=feddyn",
        ),
    ],
)
def test_half_of_it_is_refused_before_data_is_loaded(
    words: tuple[str, ...],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Synthetic, "load", None)
    assert main(["run", "dataset=synthetic", *words]) == 2
    assert capsys.readouterr().err == f"fedexp: {message}\n"


@pytest.mark.parametrize(
    "words",
    [("algorithm=feddyn", "local.alpha=0.3"), ("algorithm=feddyn", "local.alpha=0")],
    ids=lambda words: words[1],
)
def test_one_alpha_for_both_is_accepted(tiny: Tiny, words: tuple[str, ...]):
    compatibility.refuse(spec.build(tiny(*words)))


CHANGES = {
    "nothing": (),
    "privacy": ("privacy=client_local", "privacy.clip=0.1", "privacy.noise_multiplier=0.1", "privacy.delta=1e-3"),
    "an attack": ("attack=sign_flip", "scenario.malicious=2"),
    "arc": ("pre_aggregation=arc", "scenario.malicious=2"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_where_messages_change_on_their_way_its_memory_is_no_mean(tiny: Tiny, change: str):
    """As its docstring says; where nothing changes them it is the mean of what clients remember."""
    world = world_of(tiny("algorithm=feddyn", "local.alpha=0.1", "rounds=2", "selector=all", *CHANGES[change]))
    compatibility.refuse(world.exp)
    *_, (state, *_) = rounds_with_rows(world)
    h = -0.1 * state.memory["aggregator"]["0"]["correction"]
    distance = (h - state.memory["local"]["rows"].mean(dim=0)).abs().max()
    assert (distance < 1e-6) == (change == "nothing")
