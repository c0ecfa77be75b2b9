"""FedProx beside its authors' program, and beside FedDyn's authors'.

Of github.com/litian96/FedProx at d2a4501f319f1594b732d88315c5ca1a72855f50 ran the Server of flearn/trainers/fedprox.py
with the aggregate of fedbase.py and PerturbedGradientDescent of optimizer/pgd.py, whose TensorFlow operations (a
subtraction in place, a cast) were NumPy's, as the gradients were PyTorch's, in float64. learning_rate 0.1, num_epochs
2, batch_size 2, drop_percent 0, mu 0.5 and 4, all three clients; its clients shuffle, here they do not. With
drop_percent some clients train for fewer epochs, drawn at random, and count all the same.

Of github.com/alpemreacar/FedDyn at 48a19fac440ef079ce563da8e0c2896f8256fef9 ran utils_methods.train_FedProx: 1, then
0, then 1 and 2 take part (act_prob 0.6, rand_seed 13), learning_rate 0.1, mu 0.3, epoch 2, batch_size 2,
lr_decay_per_round 1, weight_decay 0, float64 in place of float32. Nothing differs in either.
"""

import pytest
from authors.servers import TWO_EPOCHS, assert_agrees, models, take_part, three_clients
from worlds import Tiny

pytestmark = pytest.mark.usefixtures("_double")

RULE = ("algorithm=fedprox", "local.lr=0.1", *TWO_EPOCHS)
PULL = """
0.4488365601 -0.7662121733 0.296650681 1.010936818 0.09399479067 -0.2087377348 0.7309799822 -0.5155720889
-0.2309799822 0.6405720889 0.02968346718 -0.09218346718 0.4025391721 -0.7790035196 0.3402944929 1.018645272
0.06927164694 -0.1743444311 0.7151153901 -0.5312407123 -0.2151153901 0.6562407123 0.005442792012 -0.06794279201
"""
STRONG_PULL = """
0.472512915 -0.7539293879 0.2775369239 1.003752782 0.106862072 -0.2217356074 0.7344851028 -0.5024105895 -0.2344851028
0.6274105895 0.04259352643 -0.1050935264 0.4464311039 -0.7570701976 0.3041916257 1.006559794 0.09088595635
-0.1960689216 0.7199459298 -0.5053710979 -0.2199459298 0.6303710979 0.02571646718 -0.08821646718
"""
SOME_CLIENTS = """
0.5329971544 -0.7003769159 0.2023242054 0.9883604078 0.142865662 -0.2296145819 0.7199091257 -0.4322203113
-0.2199091257 0.5572203113 0.1028713248 -0.1653713248 0.4380707563 -0.7112219996 0.3052399912 0.9812789289
0.1081462626 -0.1922928463 0.665588627 -0.4559206101 -0.165588627 0.5809206101 0.05144332555 -0.1139433255
0.4239918406 -0.7340009001 0.302929217 1.010780378 0.08139637487 -0.1492538358 0.6724294439 -0.4712684525
-0.1724294439 0.5962684525 0.02431971802 -0.08681971802
"""


@pytest.mark.parametrize(("mu", "theirs"), [(0.5, PULL), (4, STRONG_PULL)])
def test_two_rounds(tiny: Tiny, tmp_path, mu: float, theirs: str):
    assert_agrees(models(three_clients(tiny, tmp_path, *RULE, f"local.mu={mu}", "rounds=2")), theirs)


def test_three_rounds_of_some_clients(tiny: Tiny, tmp_path, monkeypatch):
    take_part(monkeypatch, [1], [0], [1, 2])
    assert_agrees(models(three_clients(tiny, tmp_path, *RULE, "local.mu=0.3", "rounds=3")), SOME_CLIENTS)
