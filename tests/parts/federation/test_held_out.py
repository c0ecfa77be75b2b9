"""What clients hold out: their own share, chosen by example, nothing lost."""

import numpy as np
import pytest

from fedexp.core.random_streams import stream
from fedexp.parts.federation.held_out import hold_out
from fedexp.parts.federation.partition import Partition


def partition(*shards: list[int]) -> Partition:
    offsets = np.concatenate([[0], np.cumsum([len(shard) for shard in shards])]).astype(np.int64)
    return Partition(offsets, np.concatenate([np.array(shard, np.int64) for shard in shards]))


WHOLE = partition([7, 3, 5, 1, 9, 11, 20, 2, 4, 6], [], [8], [10, 12], [13, 14, 15])


@pytest.mark.parametrize(("fraction", "sizes"), [(0, [0] * 5), (0.2, [2, 0, 0, 1, 1]), (0.99, [9, 0, 0, 1, 2])])
def test_everyone_holds_out_its_share(fraction: float, sizes: list[int]):
    left, held = hold_out(WHOLE, fraction, stream(0, "held_out"))
    assert held.sizes.tolist() == sizes
    for client in range(5):
        own = WHOLE.shard(client).tolist()
        assert sorted([*left.shard(client), *held.shard(client)]) == sorted(own)
        assert left.shard(client).tolist() == [number for number in own if number not in held.shard(client)]


def test_nothing_asked_nothing_changed():
    assert hold_out(WHOLE, 0, stream(0, "held_out"))[0].sha256() == WHOLE.sha256()


def test_what_others_hold_does_not_matter():
    _, held = hold_out(WHOLE, 0.4, stream(0, "held_out"))
    turned = partition([13, 14, 15], [7, 3, 5, 1, 9, 11, 20, 2, 4, 6])
    _, again = hold_out(turned, 0.4, stream(0, "held_out"))
    assert again.shard(1).tolist() == held.shard(0).tolist()
    assert hold_out(WHOLE, 0.4, stream(1, "held_out"))[1].shard(0).tolist() != held.shard(0).tolist()
