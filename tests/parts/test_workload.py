"""How long clients train: parts of epochs, drawn epochs, and who is told of them."""

from functools import partial

import numpy as np
import pytest
from worlds import Tiny, rounds_with_rows, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.random_streams import stream
from fedexp.parts.local.sgd import SGD
from fedexp.run import banner
from fedexp.simulation import context
from fedexp.simulation.rounds import run_rounds
from fedexp.training.client.batches import draw_batches


def test_part_of_an_epoch_is_rounded_up_by_hand():
    """Seven examples in batches of two are four steps; 1.5 epochs are six, 0.3 of one are two."""
    for epochs, steps in ((1, 4), (1.0, 4), (1.5, 6), (0.5, 2), (0.3, 2), (0.01, 1)):
        assert draw_batches(SGD(epochs=epochs, batch_size=2), 7, np.random.default_rng(0)).steps == steps
    assert SGD(epochs=0.1).steps_in(30) == 3, "a tenth of thirty is three, however 0.1 is rounded"
    assert SGD(epochs=1.5, batch_size=2).full_batch_steps(np.array([0, 1, 2, 7])).tolist() == [0, 0, 2, 5]
    assert SGD(epochs=0.5).passes(np.array([3, 9])).tolist() == [0.5, 0.5]


def test_half_an_epoch_is_the_first_half_of_one():
    whole, half = (draw_batches(SGD(epochs=epochs, batch_size=2), 8, np.random.default_rng(3)) for epochs in (1, 0.5))
    assert half.order.tolist() == whole.order[:4].tolist()


def test_drawn_epochs_are_whole_uniform_and_the_clients_own():
    rule = SGD(epochs=(2, 5))
    rng = partial(stream, 0, 1)
    drawn = np.array([rule.with_drawn_epochs(client, rng).epochs for client in range(400)], dtype=int)
    counts = np.unique(drawn, return_counts=True)
    assert counts[0].tolist() == [2, 3, 4, 5]
    assert counts[1].min() > 70
    assert drawn[:3].tolist() == [rule.with_drawn_epochs(client, rng).epochs for client in range(3)]
    assert (rule.steps_in(4), rule.passes(np.array([7])).tolist()) == (20, [3.5])


def test_what_is_trained_is_what_the_fleet_is_told(tiny: Tiny):
    words = ("local.epochs=[1,4]", "local.batch_size=5", "selector=all", "fleet=simulated")
    world = world_of(tiny(*words))
    owner, ctx = np.arange(6), context.make_context(world, 1)
    told = ctx.fleet.epochs(world.partition.sizes[owner], owner)
    assert len(set(told)) > 1
    fixed = [world_of(tiny(*words, f"local.epochs={epochs}")) for epochs in (1, 2, 3, 4)]
    _, _, sent = next(rounds_with_rows(world))
    for client, epochs in enumerate(told.astype(int)):
        _, _, alike = next(rounds_with_rows(fixed[epochs - 1]))
        assert (sent.delta[client] == alike.delta[client]).all(), "as with that number for all"
    assert ctx.fleet.resources(owner).work.tolist() == (told * world.partition.sizes).tolist()


def test_drawn_epochs_are_charged_as_they_come_and_promised_at_most(tiny: Tiny):
    private = ("privacy=dp_sgd", "privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3")
    world = world_of(tiny(*private, "local.epochs=[1,3]", "local.batch_size=5", "selector=all", "rounds=1"))
    state, _, _ = next(run_rounds(world.exp, world, world.initial_state()))
    told = context.make_context(world, 1).fleet.epochs(world.partition.sizes, np.arange(6))
    ledger = state.memory["privacy"]
    assert ledger["count"].tolist() == (told * (world.partition.sizes // 5)).tolist()
    assert (
        world.exp.local.full_batch_steps(world.partition.sizes).tolist() == (3 * (world.partition.sizes // 5)).tolist()
    )


@pytest.mark.parametrize(
    ("epochs", "words"), [("0.5", "0.5 epochs"), ("[2,5]", "2 to 5 epochs"), ("1", "1 epoch"), ("3", "3 epochs")]
)
def test_the_opening_says_how_long(tiny: Tiny, epochs: str, words: str):
    exp = spec.build(tiny(f"scenario.local_epochs={epochs}"))
    assert f" a round, {words} of batches of 20" in list(banner.lines(exp, 6))[1]


@pytest.mark.parametrize("epochs", ["[2]", "[5,2]", "[1,2,3]"])
def test_a_range_has_two_ends(tiny: Tiny, epochs: str):
    with pytest.raises(ConfigError, match=r"local\.epochs must be the fewest and the most as in \[2,5\], got \["):
        spec.build(tiny(f"local.epochs={epochs}"))


@pytest.mark.parametrize("epochs", ["0", "-0.5", "[0,2]"])
def test_no_epoch_at_all_is_refused(tiny: Tiny, epochs: str):
    with pytest.raises(ConfigError, match=r"local\.epochs must be an integer"):
        spec.build(tiny(f"local.epochs={epochs}"))
