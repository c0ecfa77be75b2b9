import numpy as np
import pytest

from fedexp.core.errors import ConfigError
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.federation.partition import Partition
from fedexp.parts.federation.subject import Subject

SIX = np.array([30, 4, 30, 12, 4, 7, 8, 9, 12])  # people 4 7 8 9 12 30
FACTS = Facts(shape=(1,), classes=1, train_size=9, subjects=6)


def split(federation: Subject, seed: int = 0) -> Partition:
    federation.refuse(FACTS)
    return federation.split(np.zeros(9, dtype=np.int64), SIX, 1, np.random.default_rng(seed))


def people(partition: Partition) -> list[list[int]]:
    return [sorted({*SIX[partition.shard(client)].tolist()}) for client in range(partition.clients)]


def test_one_client_a_person_in_ascending_order():
    subjects = np.array([30, 4, 30, 12, 4])
    partition = Subject().split(np.zeros(5, dtype=np.int64), subjects, 1, np.random.default_rng(0))
    assert [partition.shard(client).tolist() for client in range(partition.clients)] == [[1, 4], [3], [0, 2]]
    assert partition.server.tolist() == []


def test_people_are_dealt_in_the_order_of_the_draw():
    order = np.array([4, 7, 8, 9, 12, 30])[np.random.default_rng(0).permutation(6)].tolist()
    partition = split(Subject(persons_per_client=2, clients=2, server_persons=1))
    assert people(partition) == [sorted(order[:2]), sorted(order[2:4])]
    assert set(SIX[partition.server]) == {order[4]}
    assert set(order) - {*SIX[partition.indices], *SIX[partition.server]} == {order[5]}


@pytest.mark.parametrize("seed", range(5))
def test_the_rest_is_the_servers_and_nobodys_example_is_lost(seed: int):
    partition = split(Subject(clients=2, server_persons="rest"), seed)
    assert [len(own) for own in people(partition)] == [1, 1]
    assert len(set(SIX[partition.server])) == 4
    assert sorted([*partition.indices, *partition.server]) == list(range(9))
    assert (np.diff(partition.server) > 0).all()


def test_without_a_number_there_are_as_many_clients_as_the_people_give():
    assert split(Subject(persons_per_client=2)).clients == 3
    assert split(Subject(persons_per_client=2, server_persons=1)).clients == 2
    assert split(Subject(server_persons=2)).clients == 4


@pytest.mark.parametrize(
    ("federation", "words"),
    [
        (Subject(clients=7), "needs 7 people for 7 client"),
        (Subject(clients=6, server_persons="rest"), "needs 7 people for 6 client"),
        (Subject(persons_per_client=3, server_persons=4), "needs 7 people for 1 client"),
    ],
)
def test_too_few_people_are_refused_before_loading(federation: Subject, words: str):
    with pytest.raises(ConfigError, match=f"{words}.*the training data has 6; lower federation.clients"):
        federation.refuse(FACTS)


def test_the_rest_needs_a_number_of_clients():
    with pytest.raises(ConfigError, match=r"set federation\.clients"):
        Subject(server_persons="rest")


def test_a_dataset_without_people_is_refused_before_loading():
    Subject().refuse(Facts(shape=(1,), classes=2, train_size=9, subjects=3))
    with pytest.raises(
        ConfigError, match=r"does not say who they are; set dataset.client=COLUMN \(table, huggingface\), give"
    ):
        Subject().refuse(Facts(shape=(1,), classes=2, train_size=9))
    with pytest.raises(ConfigError, match="does not say who they are"):
        Subject().split(np.zeros(5, dtype=np.int64), None, 1, np.random.default_rng(0))
