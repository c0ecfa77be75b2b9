"""Durations of FLSim: their distribution, whatever the examples."""

import numpy as np
import pytest
from worlds import Tiny, rounds_with_rows, world_of

from fedexp.simulation import context


def test_durations_are_half_normal_and_links_take_no_time(tiny: Tiny):
    words = ("scenario.clients=900", "dataset.train_size=300", "federation=iid", "fleet=half_normal", "fleet.std_s=5")
    world = world_of(tiny(*words, "fleet.least_s=2"))
    first, second = (world.exp.fleet.journeys(np.arange(900), context.make_context(world, number)) for number in (1, 2))
    excess = first.training_s - 2
    assert excess.min() >= 0
    assert excess.mean() == pytest.approx(5 * np.sqrt(2 / np.pi), rel=0.1)
    assert np.sqrt((excess**2).mean()) == pytest.approx(5, rel=0.1)
    assert (excess < 5).mean() == pytest.approx(0.683, abs=0.05)
    assert (first.download_s + first.upload_s).tolist() == [0.0] * 900
    assert (first.training_s != second.training_s).all()  # drawn anew for each training
    assert abs(np.corrcoef(first.training_s, world.partition.sizes)[0, 1]) < 0.1


def test_a_round_lasts_as_long_as_the_slowest(tiny: Tiny):
    world = world_of(tiny("fleet=half_normal"))
    seconds = 0.0
    for number, (_, row, sent) in enumerate(rounds_with_rows(world), start=1):
        seconds += world.exp.fleet.journeys(sent.owner, context.make_context(world, number)).training_s.max()
        assert row["sim_s"] == pytest.approx(seconds)


def test_telling_the_loss_takes_a_third_of_an_epoch_more(tiny: Tiny):
    plain, asked = (
        context.make_context(world_of(tiny("fleet=half_normal", "local.epochs=2", *words)), 2).fleet.journeys(
            np.arange(6)
        )
        for words in ((), ("selector=oort",))
    )
    assert asked.training_s == pytest.approx(plain.training_s * (2 + 1 / 3) / 2)
