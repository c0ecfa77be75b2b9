import numpy as np

from fedexp.parts.selector.data_upload import examples_before_deadline, upload_order

SHARDS = [np.array([10, 11, 12]), np.array([20, 21]), np.array([30, 31, 32])]
LABELS = [np.array([0, 0, 1]), np.array([1, 1]), np.array([0, 2, 2])]


def test_classes_take_turns_and_the_fastest_with_the_class_sends_first():
    # throughput 1, 3, 2. Class 0: client 2 (30), then client 0 (10, 11); class 1: client 1 (20, 21), then 0 (12);
    # class 2: client 2 (31, 32). Turns: 30, 20, 31 | 10, 21, 32 | 11, 12
    order = upload_order(SHARDS, LABELS, np.array([1.0, 3.0, 2.0]))
    assert [int(SHARDS[who][place]) for who, place in order] == [30, 20, 31, 10, 21, 32, 11, 12]


def test_uploads_follow_each_other_until_the_deadline():
    # 6 Mbit an example: 3 s from client 2, 2 s from client 1, 6 s from client 0: in at 3, 5, 8, 14, ...
    throughput = np.array([1.0, 3.0, 2.0])
    for deadline, expected in (
        (2.9, []),
        (3.0, [30]),
        (8.0, [30, 20, 31]),
        (13.9, [30, 20, 31]),
        (14.0, [30, 20, 31, 10]),
    ):
        assert examples_before_deadline(SHARDS, LABELS, throughput, 6e6, deadline).tolist() == expected
    assert len(examples_before_deadline(SHARDS, LABELS, throughput, 6e6, 1e9)) == 8


def test_equal_throughputs_go_to_the_smaller_number_and_nobody_sends_nothing():
    shards, labels = [np.array([1]), np.array([2])], [np.array([0]), np.array([0])]
    assert examples_before_deadline(shards, labels, np.array([2.0, 2.0]), 1e6, 10.0).tolist() == [1, 2]
    assert examples_before_deadline([], [], np.zeros(0), 1e6, 10.0).tolist() == []
    assert (
        examples_before_deadline([np.zeros(0, np.int64)], [np.zeros(0, np.int64)], np.ones(1), 1e6, 10.0).tolist() == []
    )
