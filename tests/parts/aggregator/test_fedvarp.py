"""FedVARP by hand, and where its control variates cancel."""

import torch
from worlds import Tiny, folded, rounds_with_rows, uploads_like, world_of


def test_three_rounds_by_hand(tiny: Tiny):
    world = world_of(tiny("aggregator=fedvarp"))
    clients, row = world.partition.clients, torch.ones(1, world.layout.size)
    first, memory = folded(world, uploads_like(torch.cat([row, 3 * row]), [0, 1]))
    torch.testing.assert_close(first, world.first.flat + 2)
    second, memory = folded(world, uploads_like(torch.cat([4 * row, row]), [0, 2]), memory)
    torch.testing.assert_close(second, world.first.flat + ((4 - 1) + (1 - 0)) / 2 + (1 + 3) / clients)
    third, memory = folded(world, uploads_like(5 * row, [1]), memory)
    torch.testing.assert_close(third, world.first.flat + (5 - 3) + (4 + 3 + 1) / clients)
    assert memory["aggregator"]["columns"]["heard"] == 3


def test_if_everybody_takes_part_the_control_variates_cancel(tiny: Tiny):
    words = ("selector=all", "rounds=3")
    fedvarp, fedavg = (
        [state.models[0].flat for state, *_ in rounds_with_rows(world_of(tiny(*words, *rule)))]
        for rule in (("aggregator=fedvarp",), ("aggregator.weighting=uniform",))
    )
    for one, other in zip(fedvarp, fedavg, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)
