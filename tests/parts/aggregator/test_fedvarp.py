"""FedVARP by hand, and where its control variates cancel."""

import pytest
import torch
from worlds import Tiny, folded, rounds_with_rows, uploads_like, world_of


@pytest.mark.law(
    "aggregator=fedvarp", "the step is the mean change of those who came plus the mean of all last updates"
)
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


@pytest.mark.law("aggregator=fedvarp", "if everybody takes part, it is FedAvg with equal weights")
def test_if_everybody_takes_part_the_control_variates_cancel(tiny: Tiny):
    words = ("selector=all", "rounds=3")
    fedvarp, fedavg = (
        [state.models[0].flat for state, *_ in rounds_with_rows(world_of(tiny(*words, *rule)))]
        for rule in (("aggregator=fedvarp",), ("aggregator.weighting=uniform",))
    )
    for one, other in zip(fedvarp, fedavg, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


@pytest.mark.law("algorithm=ca2fl", "a buffer of all that train equally fast is FedVARP, to the byte")
def test_on_a_buffer_of_all_that_train_ca2fl_is_fedvarp_to_the_byte(tiny: Tiny):
    """Three of six clients train at a time, equally fast, so nobody's update is stale."""
    together = ("pacing.buffer=3", "pacing.refill=step")
    ca2fl, fedvarp, fedavg = (
        [state.models[0].flat for state, *_ in rounds_with_rows(world_of(tiny(*rule, "rounds=4")))]
        for rule in (("algorithm=ca2fl", *together), ("aggregator=fedvarp",), ("aggregator.weighting=uniform",))
    )
    assert all(torch.equal(*pair) for pair in zip(ca2fl, fedvarp, strict=True))
    assert not torch.equal(fedvarp[-1], fedavg[-1])
