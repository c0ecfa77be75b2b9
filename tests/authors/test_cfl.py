"""CFL beside its authors' program.

Of github.com/felisat/clustered-federated-learning at 23a1c3887ed151a9c6340370337804766d11c69c ran Client and Server of
fl_devices.py, called as in a round of its notebook. Set as here: full batches, two local epochs, rate 0.5. To make it
the same as ours a client trained on all its examples (train_frac 1), its momentum was 0, and its rate began at 0.5 /
0.99, which it multiplies by 0.99 before a round; for a newer scikit-learn, the word affinity was metric.

A round without a division agrees: the plain mean, the longest update, the cosines; so do the groups that a division
makes (linkage=complete). It differs in six things. (1) The length of a cluster's mean update, which eps1 judges, is of
the plain mean; ours is of the mean by numbers of examples, for every aggregator.weighting. (2) Where a cluster is
divided, each group takes the mean of its own updates at once; ours takes the mean of the whole cluster once more, and
both groups go on from there. (3) From the second division on the program takes positions in a cluster for numbers of
clients, so that other clients change theirs. (4) Its clients' momentum of 0.9 lasts from round to round, as with
local.worker_momentum. (5) It divides no cluster of two, and (6) none before round 21.
"""

import numpy as np
import pytest
import torch
from authors.three_clients import assert_agrees, first_model, states, three_clients
from worlds import Tiny, train_first_round

from fedexp.parts.clustering.cfl import bipartition, cosine_similarities

pytestmark = pytest.mark.usefixtures("_double")

WORDS = (
    *("clustering=cfl", "clustering.linkage=complete", "local=sgd", "local.lr=0.5", "local.epochs=2", "rounds=1"),
    *("local.batch_size=full", "aggregator.weighting=uniform", "selector=all", "evaluation.personal_fraction=0"),
)
MEAN = """
0.6242686897 -0.1971377085 0.1603647488 0.6910808633 -0.3773613955 0.162356196 0.1150831046 -0.2441789323 0.01058738311
0.8389091077 -0.4140649235 0.1936776875 -0.2727126588 0.489367219 0.3927618412 0.05880355107 0.1746977045 -0.5864395287
-0.03046613468 0.05998876613 -0.02952263145
"""
COSINES = """
1 0.05120507136 -0.7550820954 0.05120507136 1 -0.1996438914 -0.7550820954 -0.1996438914 1
"""
NORMS = """
0.306956181 0.9192555147
"""
GROUPS = """
0.7186879033 -0.2067790587 0.05190700408 0.6905068162 -0.3013766174 0.2750040333 0.1889261994 -0.3513426752
0.07995152808 0.9296374306 -0.3891055312 0.13144239 -0.3168509652 0.5520175438 0.4184595051 0.01221353461 0.08708798739
-0.5499018951 0.1160603601 0.03015306012 -0.1462134203
0.4354302623 -0.1778550082 0.3772802382 0.6922289576 -0.5293309518 -0.06293947864 -0.03260308495 -0.02985144646
-0.1281409068 0.6574524619 -0.4639837081 0.3181482825 -0.1844360459 0.3640665693 0.3413665134 0.151983584 0.3499171387
-0.6595147959 -0.3235191243 0.1196601781 0.2038589461
"""
VECTORS = ((3, 1, 0), (1, 3, 0), (-1, 2, 1), (-3, 1, 2), (-2, -2, 1), (0, -3, 1), (2, -2, 3), (1, 1, -2))
PROGRAM = {(0, 1, 7), (2, 3, 4, 5, 6)}  # its two groups of these vectors


@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_a_round_without_a_division(tiny: Tiny, tmp_path, engine: str):
    world = three_clients(tiny, tmp_path, *WORDS, "clustering.eps1=0", f"engine={engine}")
    [state] = states(world)
    assert_agrees(state.models[1].flat, MEAN)
    updates = train_first_round(world)[:, :21] - first_model()
    assert_agrees(torch.from_numpy(cosine_similarities(updates)).flatten(), COSINES)
    columns, plain = state.memory["clustering"]["columns"], updates.mean(dim=0).norm()
    assert_agrees(torch.tensor([plain, columns["max_norm"]]), NORMS)
    by_examples = (torch.tensor([4.0, 2.0, 3.0]) / 9) @ updates
    assert columns["mean_norm"] == pytest.approx(float(by_examples.norm()))


def test_the_groups_of_a_division_begin_from_one_mean(tiny: Tiny, tmp_path):
    """The first two clients and the third; theirs are the means of each group."""
    world = three_clients(tiny, tmp_path, *WORDS, "clustering.eps1=inf", "clustering.eps2=0")
    [state] = states(world)
    assert state.memory["clustering"]["cluster"].tolist() == [1, 1, 2]
    for weights in state.models[1:]:
        assert_agrees(weights.flat, MEAN)
    rows = train_first_round(world)[:, :21]
    assert_agrees(torch.stack([rows[:2].mean(dim=0), rows[2]]), GROUPS)


def test_eight_vectors_fall_into_the_same_groups():
    leaves = bipartition(cosine_similarities(torch.tensor(VECTORS, dtype=torch.float64)), "complete")
    groups = {tuple(np.flatnonzero(mask).tolist()) for mask in (leaves, ~leaves)}
    assert groups == PROGRAM
