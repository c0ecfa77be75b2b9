import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedexp.core.errors import ConfigError
from fedexp.parts.local.sgd import SGD
from fedexp.training.client.batches import Batches, draw_all, draw_batches, running_losses, smallest_batch


def cut(batches: Batches) -> list[list[int]]:
    return [batches.order[a:b].tolist() for a, b in zip(batches.bounds[:-1], batches.bounds[1:], strict=True)]


def test_seven_examples_in_batches_of_three_by_hand():
    rule = SGD(epochs=2, batch_size=3, order="file")
    assert cut(draw_batches(rule, 7, np.random.default_rng(0))) == [[0, 1, 2], [3, 4, 5], [6]] * 2


def test_the_smallest_batch_is_a_rest():
    sizes = np.array([8, 7, 0, 12])
    assert smallest_batch(SGD(batch_size=3), sizes, "rule") == 1
    assert smallest_batch(SGD(batch_size=3, drop_last=True), sizes, "rule") == 3
    assert smallest_batch(SGD(batch_size="full"), sizes, "rule") == 7
    assert smallest_batch(SGD(epochs=0.5, batch_size=3), sizes, "rule") == 3, "all stop before their rest"
    assert smallest_batch(SGD(batch_size=3), sizes, "poisson") == 0


def test_drop_last_leaves_the_partial_batch_out():
    rule = SGD(epochs=2, batch_size=3, order="file", drop_last=True)
    assert cut(draw_batches(rule, 7, np.random.default_rng(0))) == [[0, 1, 2], [3, 4, 5]] * 2
    assert draw_batches(rule, 2, np.random.default_rng(0)).steps == 0


def test_steps_cross_epochs_and_end_where_asked():
    rule = SGD(epochs=None, steps=4, batch_size=3, order="file")
    assert cut(draw_batches(rule, 7, np.random.default_rng(0))) == [[0, 1, 2], [3, 4, 5], [6], [0, 1, 2]]


def test_class_by_class_in_the_order_of_the_file():
    classes = np.array([2, 0, 1, 0, 2])
    rule = SGD(epochs=2, batch_size=2, order="by_class")
    assert cut(draw_batches(rule, 5, np.random.default_rng(0), classes=classes)) == [[1, 3], [2, 0], [4]] * 2


def test_every_client_goes_by_the_classes_of_its_own_examples():
    shards, labels = [np.array([4, 1, 0]), np.array([2, 3])], np.array([2, 0, 1, 0, 1])
    rngs = (np.random.default_rng(client) for client in range(2))
    drawn = draw_all([SGD(batch_size=2, order="by_class")] * 2, shards, labels, rngs)
    assert [labels[shard[batches.order]].tolist() for shard, batches in zip(shards, drawn, strict=True)] == [
        [0, 1, 2],
        [0, 1],
    ]


def test_full_batch_is_one_step_an_epoch():
    rule = SGD(epochs=3, batch_size="full", order="file")
    assert cut(draw_batches(rule, 4, np.random.default_rng(0))) == [[0, 1, 2, 3]] * 3


def test_a_client_without_examples_takes_no_step():
    assert draw_batches(SGD(batch_size="full"), 0, np.random.default_rng(0)).steps == 0


@given(
    examples=st.integers(1, 60),
    size=st.integers(1, 70),
    epochs=st.integers(1, 4),
    drop=st.booleans(),
    seed=st.integers(0, 9),
)
def test_every_epoch_visits_every_example_once(examples: int, size: int, epochs: int, drop: bool, seed: int):
    rule = SGD(epochs=epochs, batch_size=size, drop_last=drop)
    batches = draw_batches(rule, examples, np.random.default_rng(seed))
    assert batches.steps == epochs * (examples // size if drop else -(-examples // size))
    for epoch in range(epochs if batches.epoch else 0):
        seen = np.concatenate(cut(batches)[epoch * batches.epoch : (epoch + 1) * batches.epoch])
        assert len(np.unique(seen)) == len(seen) == (examples // size * size if drop else examples)


def test_running_losses_weigh_batches_by_their_examples():
    batches = draw_batches(SGD(epochs=2, batch_size=2, order="file"), 3, np.random.default_rng(0))
    before, after = running_losses(np.array([3.0, 6.0, 1.0, 4.0]), batches.counts, batches.epoch)
    assert (before, after) == (pytest.approx((2 * 3 + 6) / 3), pytest.approx((2 * 1 + 4) / 3))


def test_running_losses_of_nobody_do_not_exist():
    nobody = draw_batches(SGD(), 0, np.random.default_rng(0))
    assert np.isnan(running_losses(np.zeros(0), nobody.counts, nobody.epoch)).all()


def test_more_steps_than_memory_holds_are_refused():
    with pytest.raises(ConfigError, match="more steps than memory can hold; lower it"):
        draw_batches(SGD(epochs=1e20, batch_size=5), 20, np.random.default_rng(0))
