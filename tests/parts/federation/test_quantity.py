import numpy as np
import pytest
from skews import label_skew

from fedexp.core.errors import ConfigError
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.federation.dirichlet import dirichlet_shares
from fedexp.parts.federation.quantity import QuantitySkew
from fedexp.parts.federation.statistics import class_counts, size_gini

LABELS = np.arange(6000) % 10


def split(**values: float):
    return QuantitySkew(**{"clients": 10, **values}).split(LABELS, None, 10, np.random.default_rng(0))


def test_sizes_are_the_shares_of_the_draw_and_labels_a_random_sample():
    partition = split(beta=0.5)
    shares = dirichlet_shares(10, 0.5, np.random.default_rng(0))
    assert np.abs(partition.sizes - 6000 * shares).max() <= 1
    assert label_skew(class_counts(partition, LABELS, 10)[partition.sizes > 300]) < 0.06


def test_the_limits_of_beta():
    assert size_gini(split(beta=1e6).sizes) < 0.01
    assert np.sort(split(beta=1e-6).sizes)[-1] == 6000


def test_the_authors_minimum_of_ten_is_kept():
    assert split(beta=0.5, min_size=10).sizes.min() >= 10
    with pytest.raises(ConfigError, match=r"min_size=500 was not reached with beta=0.5, 10 clients: .*; raise beta or"):
        split(beta=0.5, min_size=500, retries=2)
    with pytest.raises(ConfigError, match="needs 700 examples, but there are 600; lower"):
        QuantitySkew(clients=10, min_size=70).refuse(Facts(shape=(1,), classes=2, train_size=600))
