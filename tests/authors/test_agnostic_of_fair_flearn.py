"""Agnostic federated learning beside the program of q-FedAvg's authors; none of its own authors was found.

Of github.com/litian96/fair_flearn at f09797113147b5ae66eb0348e93f575d5d63baed ran the Server of flearn/trainers/afl.py
with the aggregate of fedbase.py and the project of utils/model_utils.py; a network in PyTorch stood in for its
TensorFlow model, in float64. learning_rate 0.5, learning_rate_lambda 0.8. All three clients send a gradient of all
their examples in each round, here `local=full_batch_step`. Its Adagrad does not touch what the server gets.

Its sampling was 5, the default; with 2, as its README runs AFL, its aggregate ignores the mixture. Models and
mixtures are the same. It tests the mean of the models of all rounds, ours tests the last one.
"""

import pytest
import torch
from authors.servers import assert_agrees, three_clients
from worlds import Tiny, rounds_with_rows

pytestmark = pytest.mark.usefixtures("_double")

THREE_ROUNDS = """
0.4545611709 -0.7482373185 0.2720498756 1.009641322 0.1009727523 -0.1939843717 0.708520597 -0.4809809392 -0.208520597
0.6059809392 0.05108978585 -0.1135897858 0.4624276772 -0.6891590766 0.239877498 0.9962572378 0.1075074455
-0.1423951395 0.6379000246 -0.3851784628 -0.1379000246 0.5101784628 0.09722568521 -0.1597256852 0.5049493406
-0.6139986903 0.1728996604 0.9899979162 0.1240504054 -0.08793919267 0.5776081442 -0.2642014403 -0.07760814422
0.3892014403 0.1541828038 -0.2166828038
"""
MIXTURE = [0.05071870126508726, 0.9492812987349128, 0]


def test_three_rounds(tiny: Tiny, tmp_path):
    words = ("algorithm=agnostic", "aggregator.lr=0.8", "local=full_batch_step", "local.lr=0.5", "rounds=3")
    states = [state for state, _, _ in rounds_with_rows(three_clients(tiny, tmp_path, *words))]
    assert_agrees(torch.stack([state.models[0].flat for state in states]), THREE_ROUNDS)
    assert states[-1].memory["aggregator"]["0"]["mixture"].tolist() == pytest.approx(MIXTURE, rel=1e-9)
