import numpy as np
import pytest

from fedexp.data.dataset import Facts
from fedexp.federations.subject import Subject
from fedexp.spec import ConfigError


def test_one_client_a_person_in_ascending_order():
    subjects = np.array([30, 4, 30, 12, 4])
    partition = Subject().split(np.zeros(5, dtype=np.int64), subjects, 1, np.random.default_rng(0))
    assert [partition.shard(client).tolist() for client in range(partition.clients)] == [[1, 4], [3], [0, 2]]


def test_a_dataset_without_people_is_refused_before_loading():
    Subject().refuse(Facts(shape=(1,), classes=2, train_size=9, subjects=3))
    with pytest.raises(ConfigError, match="no subjects; use dataset=har"):
        Subject().refuse(Facts(shape=(1,), classes=2, train_size=9))
    with pytest.raises(ConfigError, match="no subjects"):
        Subject().split(np.zeros(5, dtype=np.int64), None, 1, np.random.default_rng(0))
