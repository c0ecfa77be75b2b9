"""The tables about asynchronous learning: the slips that they show, by hand, and what their sources say."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from script_modules import imported
from worlds import Tiny, rounds_with_rows, world_of

from fedexp.core.errors import ConfigError
from fedexp.core.values import State, Weights
from fedexp.parts.fleet.trace import read_trace
from fedexp.replay import table
from scripts.replays.appfl_send_gradient.mean_difference import MeanDifference
from scripts.replays.plato_fedasync.compounding import CompoundingMixing

REPLAYS = Path(__file__).parents[2] / "scripts" / "replays"
PART = "pacing._target_=scripts.replays.plato_fedasync.compounding.CompoundingMixing"
WORDS = (
    "rounds=8",
    "local.batch_size=7",
    "scenario.participants=4",
    "pacing=buffered",
    "pacing.buffer=1",
    "pacing.mixing=0.9",
)
FLEET = ("fleet=simulated", "fleet.jitter_std=0", "fleet.link=own", "pacing.exponent=2")
PUBLISHED_S = (  # elapsed_time of issue 335 by step, minimum_clients_aggregated = 1
    50.14079451560974, 50.575541257858276, 50.747315645217896, 50.81657099723816, 51.23520350456238, 51.34218502044678,
    51.80778479576111, 52.166738986968994, 52.67929291725159, 53.30119204521179, 53.447898626327515, 53.637184619903564,
    53.742652893066406, 54.83425712585449, 56.740330934524536, 59.87186360359192,
)  # fmt: skip


def settings(name: str, cell: str) -> dict[str, str]:
    """The words of a cell."""
    cells = {each.name: each for each in table.load(name).cells}
    return dict(word.split("=", 1) for word in cells[cell].words(0))


def states(config: dict, rounds: int) -> list[State]:
    return [state for state, *_ in islice(rounds_with_rows(world_of(config)), rounds)]


def factors(config: dict, rounds: int = 8) -> tuple[list[float], list[float]]:
    """The staleness of the upload of each step, and the factor with which it counts."""
    memories = [state.memory["pacing"]["arrived"] for state in states(config, rounds)]
    return [float(held["age"][0]) for held in memories], [float(held["factor"][0]) for held in memories]


def test_the_share_dies_out_as_published_and_not_as_meant(tiny: Tiny):
    """As published it is the product of all factors so far; as meant two steps of equal staleness have equal ones."""
    ages, meant = factors(tiny(*WORDS, *FLEET))
    assert meant == pytest.approx([(1 + age) ** -2 for age in ages])
    slip_ages, published = factors(tiny(*WORDS, *FLEET, PART))
    assert slip_ages == ages
    assert published == pytest.approx(np.cumprod(meant).tolist())
    assert published[-1] < 0.01 * meant[-1]


def test_the_slip_is_of_steps_of_one_upload():
    with pytest.raises(ConfigError, match="needs buffer=1 and a mixing, got buffer=5"):
        CompoundingMixing(clients=4, buffer=5, mixing=0.9)
    with pytest.raises(ConfigError, match="mixing=None"):
        CompoundingMixing(clients=4, buffer=1)


def test_the_published_seconds_are_those_of_the_fleet():
    """Five epochs of 10 s and a sleep: each published second is that of a client, and no client has two."""
    with imported(REPLAYS / "plato_fedasync", "speeds") as (speeds,):
        assert (REPLAYS / "plato_fedasync" / "speeds.csv").read_text() == speeds.text()
        durations_s = 5 * (10 + speeds.sleeps())
    nearest = [int(np.abs(durations_s - second).argmin()) for second in PUBLISHED_S]
    assert np.abs(durations_s[nearest] - PUBLISHED_S).max() < 1e-6
    assert nearest == [14, 44, 49, 18, 19, 52, 53, 3, 83, 74, 94, 31, 86, 54, 56, 66]
    speed = read_trace(REPLAYS / "plato_fedasync" / "speeds.csv").speed
    assert 5 * 600 / speed == pytest.approx(durations_s, rel=1e-11)


def test_plato_has_the_settings_of_its_example():
    cell = settings("plato_fedasync", "alpha as published, step 4")
    asked = ("scenario.clients", "scenario.participants", "scenario.local_epochs", "local.batch_size", "local.lr")
    assert [float(cell[key]) for key in (*asked, "local.momentum")] == [100, 20, 5, 32, 0.01, 0.9]
    assert [cell[f"pacing.{key}"] for key in ("buffer", "mixing", "exponent")] == ["1", "0.9", "2"]
    assert float(cell["federation.alpha"]) == 10 * 5  # concentration 5 of each of ten classes
    meant = settings("plato_fedasync", "alpha as meant, step 4")
    assert {key for key in cell if cell[key] != meant.get(key)} == {"pacing._target_", "rounds"}
    published = {cell.measure.at: cell.published.value for cell in table.load("plato_fedasync").cells if cell.published}
    assert published == {1: 0.6546, 2: 0.6981, 3: 0.7022, 4: 0.7023, 16: 0.7023}


def test_minus_the_mean_update_becomes_the_model(tiny: Tiny):
    """w = (1, 2), clients come to (2, 2) and (4, 4): the mean of w - x is (-2, -1)."""
    state = next(rounds_with_rows(world_of(tiny())))[0].models[0]
    entries = len(state.flat)
    pad = torch.zeros(entries - 2)
    weights = Weights(torch.cat([torch.tensor([1.0, 2.0]), pad]), state.layout)
    proposal = Weights(torch.cat([torch.tensor([3.0, 3.0]), pad]), state.layout)
    model, memory = MeanDifference().step(weights, proposal, {})
    assert model.flat[:2].tolist() == [-2.0, -1.0]
    assert memory == {}


def test_appfl_has_the_settings_of_its_example():
    cell = settings("appfl_send_gradient", "mean difference as model, last round")
    assert [cell[key] for key in ("local", "local.steps", "local.batch_size", "local.lr")] == [
        "adam",
        "20",
        "64",
        "0.001",
    ]
    assert (cell["scenario.clients"], cell["aggregator.weighting"], cell["rounds"]) == ("10", "uniform", "10")
    added = settings("appfl_send_gradient", "mean difference added, last round")
    assert {key for key in cell if cell[key] != added.get(key)} == {"server_optimizer._target_"}


@pytest.mark.parametrize("network", ["LeNet", "ModerateCNN"])
def test_nvflare_compares_as_many_updates(network: str):
    kinds = ("synchronous", "FedBuff")
    synchronous, buffered = (settings("nvflare_fedbuff", f"{network}, {kind}, 400 updates") for kind in kinds)
    assert [int(cell["pacing.buffer"]) * int(cell["rounds"]) for cell in (synchronous, buffered)] == [400, 400]
    changed = {key for key in {*synchronous, *buffered} if synchronous.get(key) != buffered.get(key)}
    assert changed == {"pacing.buffer", "pacing.refill", "rounds"}
    assert synchronous["pacing.buffer"] == synchronous["scenario.clients"] == "8"


@pytest.mark.parametrize(("cell", "slow"), [("one client a round late", 1), ("two clients a round late", 2)])
def test_slow_clients_are_in_every_second_round(tiny: Tiny, tmp_path: Path, cell: str, slow: int):
    """As the column qtty_records of FedSaSync's logs has it: 9, 10, 9, 10 or 8, 10, 8, 10, the slow ones a step old."""
    words = settings("fedsasync_mnist", f"{cell}, round 24")
    trace = read_trace(Path(words.pop("fleet.trace")))
    assert sorted(4800 / trace.speed) == [*[1] * (10 - slow), *[6] * slow]
    lines = (f"{client},1,1000,{4 / (6 if client < slow else 1)}\n" for client in range(10))  # of four examples each
    (tmp_path / "fleet.csv").write_text("client,round,bandwidth_mbit,compute_samples_per_s\n" + "".join(lines))
    pacing = (f"{key}={value}" for key, value in words.items() if key.startswith(("pacing", "fleet")))
    federation = ("federation=iid", "scenario.clients=10", "scenario.participants=10", "dataset.train_size=40")
    config = tiny(*federation, *pacing, f"fleet.trace={tmp_path / 'fleet.csv'}", "rounds=6")
    arrived = [state.memory["pacing"]["arrived"] for state in states(config, 6)]
    assert [len(step["owner"]) for step in arrived] == [10 - slow, 10] * 3
    for step in arrived[1::2]:
        ages = dict(zip(step["owner"].tolist(), step["age"].tolist(), strict=True))
        assert [ages[client] for client in range(10)] == [1] * slow + [0] * (10 - slow)
        assert set(step["factor"].tolist()) == {1.0}
