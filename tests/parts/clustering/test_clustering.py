"""The global model made of the clusters'."""

import numpy as np
import torch

from fedexp.core.values import Layout, Weights
from fedexp.parts.clustering.contract import mean_of_clusters

LAYOUT = Layout(("w",), ((2,),), 1)
MODELS = tuple(Weights(torch.tensor(row), LAYOUT) for row in ([7.0, 7.0], [1.0, 10.0], [4.0, -2.0]))


def test_the_mean_of_the_clusters_by_their_examples():
    assert mean_of_clusters(MODELS, np.array([10, 30])).flat.tolist() == [3.25, 1.0]
    assert mean_of_clusters(MODELS, np.array([10, 0])).flat.tolist() == [1.0, 10.0]


def test_without_examples_the_global_model_stays():
    assert mean_of_clusters(MODELS, np.array([0, 0])) is MODELS[0]
    assert mean_of_clusters(MODELS[:1], np.zeros(0)) is MODELS[0]


def test_the_mean_of_one_is_its_every_bit():
    row = torch.randn(2, generator=torch.Generator().manual_seed(0)) / 3
    alone = (MODELS[0], Weights(row, LAYOUT))
    assert torch.equal(mean_of_clusters(alone, np.array([17.0])).flat, row)
