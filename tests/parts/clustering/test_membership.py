"""The queue and the clusters with a pencil."""

import numpy as np

from fedexp.parts.clustering.membership import Membership


def queue() -> Membership:
    """Clients 5, 2, 9, 4 wait for clusters 1, 2, 1, 1; nobody has joined."""
    held = Membership.load({})
    for client, cluster, number in ((5, 1, 0), (2, 2, 0), (9, 1, 1), (4, 1, 2)):
        held = held.enqueue(client, cluster, number)
    return held


def test_nobody_at_first():
    nobody = Membership.load({})
    assert nobody.clusters_of(np.array([3, 0])).tolist() == [0, 0]
    assert nobody.sizes(2).tolist() == [0, 0]
    assert nobody.next_in_queue(None).tolist() == nobody.next_in_queue(1).tolist() == []
    assert nobody.admit(nobody.next_in_queue(1)).owner.tolist() == []


def test_first_come_first_served_in_each_queue():
    assert queue().next_in_queue(None).tolist() == [0, 1, 2, 3]
    assert queue().next_in_queue(1).tolist() == [0, 1]
    assert queue().next_in_queue(2).tolist() == [0, 1, 2]


def test_who_joins_leaves_the_queue_and_the_rest_keeps_its_order():
    held = queue().admit(np.array([0, 1]))
    assert (held.owner.tolist(), held.cluster.tolist()) == ([2, 5], [2, 1])
    assert (held.waiting.tolist(), held.waits_for.tolist(), held.since.tolist()) == ([9, 4], [1, 1], [1, 2])
    assert held.next_in_queue(1).tolist() == [0]
    assert held.clusters_of(np.array([5, 9, 2, 0, 99])).tolist() == [1, 0, 2, 0, 0]
    assert held.sizes(3).tolist() == [1, 1, 0]


def test_a_memory_holds_all_of_it():
    held = queue().admit(np.array([1]))
    again = Membership.load(held.save())
    assert all((getattr(again, name) == value).all() for name, value in vars(held).items())
    assert len(queue().waiting) == 4  # the one before is as it was
