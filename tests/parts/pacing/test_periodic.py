"""Steps of the server every so many seconds."""

from itertools import islice

import pytest
import torch
from worlds import Tiny, rounds_with_rows, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.simulation.setup.compatibility import refuse

WORDS = ("scenario.participants=3", "local.epochs=2", "rounds=20", "aggregator.weighting=uniform")
FLEET = ("fleet=simulated", "fleet.speed_low=5", "fleet.jitter_std=0.3", "fleet.link=own")


@pytest.mark.law("pacing=periodic", "a period longer than the slowest client is a synchronous run, to the byte")
def test_a_period_beyond_the_slowest_is_a_synchronous_run(tiny: Tiny):
    synchronous, periodic = (
        [state.models[0].flat for state, *_ in islice(rounds_with_rows(world_of(tiny(*FLEET, *WORDS, *words))), 5)]
        for words in ((), ("pacing=periodic", "pacing.period_s=10000"))
    )
    assert all(torch.equal(*pair) for pair in zip(synchronous, periodic, strict=True))


@pytest.mark.law(
    "pacing=periodic",
    "a step with aggregator=fedavg and server_optimizer=replace moves the model if and only if something arrived",
)
def test_what_is_late_counts_in_a_later_step(tiny: Tiny):
    config = tiny(*FLEET, *WORDS, "pacing=periodic", "pacing.period_s=0.5", "pacing.clients=4")
    states, rows = [], []
    for state, row, _ in islice(rounds_with_rows(world_of(config)), 12):
        states.append(state)
        rows.append(row)
    assert [row["sim_s"] for row in rows] == [0.5 * number for number in range(1, 13)]
    assert min(row["participants"] for row in rows) == 0  # a step that nothing came in
    assert max(row["pacing.most_stale"] or 0 for row in rows) > 0
    for before, after, row in zip(states, states[1:], rows[1:], strict=False):
        assert torch.equal(before.models[0].flat, after.models[0].flat) == (row["participants"] == 0)


def test_seconds_of_idle_rounds_are_refused(tiny: Tiny):
    words = (*FLEET, *WORDS, "pacing=periodic", "fleet.idle_s=60")
    with pytest.raises(ConfigError, match=r"takes a step every pacing\.period_s, but fleet\.idle_s is how long a step"):
        refuse(spec.build(tiny(*words)))
    refuse(spec.build(tiny(*words[:-1])))
