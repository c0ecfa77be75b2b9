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


def test_by_class_one_class_goes_before_the_next_begins():
    labels = np.arange(16) % 2
    holds = [7, 3, 5, 1, 9, 11, 2, 4, 6]
    classes = set()
    for seed in range(6):
        draws = stream(seed, "held_out").random(12)
        first = min(holds, key=lambda number: draws[number])
        own = [number for number in holds if labels[number] == labels[first]]
        _, held = hold_out(partition(holds), 0.35, stream(seed, "held_out"), labels)
        assert sorted(held.shard(0).tolist()) == sorted(sorted(own, key=lambda number: draws[number])[:3])
        classes.add(labels[first])
    assert classes == {0, 1}


def test_by_class_the_next_class_gives_what_the_first_lacks():
    labels = np.arange(21) % 2
    left, held = hold_out(WHOLE, 0.7, stream(0, "held_out"), labels)
    counts = np.bincount(labels[held.shard(0)], minlength=2)
    assert held.sizes[0] == 7
    assert counts.tolist() in ([4, 3], [1, 6])  # of class 0 there are four, of class 1 six
    for client in range(5):
        assert sorted([*left.shard(client), *held.shard(client)]) == sorted(WHOLE.shard(client).tolist())


def test_by_class_what_others_hold_does_not_matter():
    labels = np.arange(21) % 3
    _, held = hold_out(WHOLE, 0.4, stream(0, "held_out"), labels)
    _, again = hold_out(partition([13, 14, 15], WHOLE.shard(0).tolist()), 0.4, stream(0, "held_out"), labels)
    assert again.shard(1).tolist() == held.shard(0).tolist()


def test_holders_are_those_with_examples_but_for_some():
    assert WHOLE.holders(np.array([], np.int64)).tolist() == [0, 2, 3, 4]
    assert WHOLE.holders(np.array([1, 3])).tolist() == [0, 2, 4]
