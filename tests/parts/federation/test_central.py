import numpy as np

from fedexp.parts.federation.central import Central


def test_one_client_holds_everything():
    partition = Central().split(np.array([2, 0, 1]), None, 3, np.random.default_rng(0))
    assert partition.offsets.tolist() == [0, 3]
    assert partition.indices.tolist() == [0, 1, 2]
