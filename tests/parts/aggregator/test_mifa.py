"""MIFA by hand, and where it is FedAvg."""

import pytest
import torch
from worlds import Tiny, folded, rounds_with_rows, uploads_like, world_of


@pytest.mark.law("aggregator=mifa", "the step is the mean of every client's last update, 0 of those never heard")
def test_two_rounds_by_hand(tiny: Tiny):
    world = world_of(tiny("aggregator=mifa"))
    clients, row = world.partition.clients, torch.ones(1, world.layout.size)
    first, memory = folded(world, uploads_like(torch.cat([row, 3 * row]), [0, 1]))
    torch.testing.assert_close(first, world.first.flat + 4 / clients)
    second, memory = folded(world, uploads_like(4 * row, [0]), memory)
    torch.testing.assert_close(second, world.first.flat + 7 / clients)  # 4 in place of 1, and the 3 of before
    assert memory["aggregator"]["columns"]["heard"] == 2
    nobody, _ = folded(world, uploads_like(row[:0], []), memory)
    torch.testing.assert_close(nobody, world.first.flat + 7 / clients)


@pytest.mark.law("aggregator=mifa", "if everybody takes part, it is FedAvg with equal weights, to the byte")
def test_if_everybody_takes_part_it_is_fedavg_to_the_byte(tiny: Tiny):
    words = ("selector=all", "rounds=3")
    mifa, fedavg = (
        [state.models[0].flat for state, *_ in rounds_with_rows(world_of(tiny(*words, *rule)))]
        for rule in (("aggregator=mifa",), ("aggregator.weighting=uniform",))
    )
    assert all(torch.equal(*pair) for pair in zip(mifa, fedavg, strict=True))
