"""SCAFFOLD beside two public programs; none of its own authors was found.

Of github.com/Xtra-Computing/NIID-Bench at 61b901ab645e62391772e9898384c2c3485b7a6c ran, of experiments.py,
train_net_scaffold, local_train_net_scaffold and the rounds of scaffold: lr 0.1, 2 epochs, batch_size 2, rho and reg 0,
in float64, without shuffling. It averages models by examples. Its variates begin as the weights of a network and not at
zero: where all clients take part that cancels, as in the first run here; for the second, in which 1, then 0, then 1 and
2 take part, they were set to zero. With momentum it divides by K lr all the same, see `local=scaffold`.

Of github.com/alpemreacar/FedDyn at 48a19fac440ef079ce563da8e0c2896f8256fef9 ran utils_methods.train_SCAFFOLD: clients
as in the second run (act_prob 0.6, rand_seed 13), learning_rate 0.1, batch_size 2, n_minibatch 4, weight_decay 0,
global_learning_rate 1, float64 in place of float32. It averages models uniformly. It differs from ours where clients
have different numbers of examples: with v a client's share times N, the correction is c / v - c_i, and c moves by v
times the difference of the client's variates. In the third run here all have three examples; the fourth shows what the
formula says, where they have not.
"""

import pytest
import torch
from authors.servers import EQUAL_OWNERS, START, TWO_EPOCHS, assert_agrees, gradient, models, take_part, three_clients
from worlds import Tiny

pytestmark = pytest.mark.usefixtures("_double")

RULE = ("algorithm=scaffold", "local.lr=0.1", "rounds=3", *TWO_EPOCHS)
BY_EXAMPLES = "aggregator.weighting=num_samples"
ALL_CLIENTS = """
0.4442379334 -0.7687222821 0.3003303886 1.012392024 0.09148886784 -0.2063260942 0.7303999452 -0.5182471377
-0.2303999452 0.6432471377 0.02715325905 -0.08965325905 0.4215132316 -0.762465749 0.3112983906 1.017639192
0.0766338641 -0.1686747909 0.7071163714 -0.5040937789 -0.2071163714 0.6290937789 0.02232139494 -0.08482139494
0.4001521858 -0.7588301551 0.3202383354 1.02365703 0.06220254028 -0.1332009023 0.682658136 -0.4900827224 -0.182658136
0.6150827224 0.02076047921 -0.08326047921
"""
SOME_CLIENTS = """
0.5335004661 -0.6996250974 0.2015794873 0.9881690329 0.1431342536 -0.2293035053 0.7194190395 -0.4311616759
-0.2194190395 0.5561616759 0.103510433 -0.166010433 0.4579928092 -0.679165979 0.2730664824 0.9753637892 0.1183253826
-0.1764667515 0.6419038853 -0.4105768973 -0.1419038853 0.5355768973 0.07520805368 -0.1377080537 0.4196766236
-0.7017219675 0.294003069 1.00352392 0.08157198278 -0.1204441552 0.6300991389 -0.431112039 -0.1300991389 0.556112039
0.03087955775 -0.09337955775
"""
UNEQUAL_CLIENTS = """
0.5669285761 -0.6483500744 0.158135222 0.9798394374 0.1620054344 -0.208975954 0.6973064476 -0.3693143978 -0.1973064476
0.4943143978 0.1380508889 -0.2005508889 0.4833875862 -0.6462039327 0.2403662103 0.9749177149 0.1320804773 -0.163197133
0.6256703266 -0.3735468769 -0.1256703266 0.4985468769 0.08947814364 -0.1519781436 0.4178486498 -0.6774541792
0.2920055924 1.003728825 0.08541645721 -0.1020249842 0.5962178538 -0.4028353086 -0.09621785378 0.5278353086
0.02442836126 -0.08692836126
"""
EQUAL_CLIENTS = """
0.5080467356 -0.6377852082 0.2518636395 0.9470435466 0.1323610146 -0.1742694741 0.6187355398 -0.337913494
-0.1187355398 0.462913494 0.1089236787 -0.1714236787 0.4447140674 -0.6150936872 0.3118236482 0.9323295834 0.1663244248
-0.2095270598 0.5521412645 -0.3386223063 -0.05214126452 0.4636223063 0.185226081 -0.247726081 0.4077392282
-0.6328768855 0.3414446742 0.9547624163 0.1452056679 -0.1723156512 0.5298897415 -0.3613083003 -0.02988974153
0.4863083003 0.1472489915 -0.2097489915
"""


@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_three_rounds_of_all_clients(tiny: Tiny, tmp_path, engine: str):
    assert_agrees(models(three_clients(tiny, tmp_path, *RULE, BY_EXAMPLES, f"engine={engine}")), ALL_CLIENTS)


def test_three_rounds_of_some_clients(tiny: Tiny, tmp_path, monkeypatch):
    take_part(monkeypatch, [1], [0], [1, 2])
    assert_agrees(models(three_clients(tiny, tmp_path, *RULE, BY_EXAMPLES)), SOME_CLIENTS)
    assert_agrees(models(three_clients(tiny, tmp_path, *RULE, owners=EQUAL_OWNERS)), EQUAL_CLIENTS)


def test_shares_in_the_variates_are_the_difference():
    """Rounds of the clients 1, then 0, then 1 and 2, written out; each takes four steps."""
    batches = {0: ((0, 1), (2, 3)) * 2, 1: ((4, 5),) * 4, 2: ((6, 7), (8,)) * 2}
    shares, model, path = (4 / 3, 2 / 3, 1.0), torch.tensor(START), []
    variates, server = torch.zeros(3, 12), torch.zeros(12)
    for clients in ((1,), (0,), (1, 2)):
        ends, change = [], torch.zeros(12)
        for client in clients:
            end = model
            for batch in batches[client]:
                end = end - 0.1 * (gradient(end, batch) + server / shares[client] - variates[client])
            variate = variates[client] - server + (model - end) / (4 * 0.1)
            change += shares[client] * (variate - variates[client])
            variates[client] = variate
            ends.append(end)
        model, server = torch.stack(ends).mean(dim=0), server + change / 3
        path.append(model)
    assert_agrees(torch.stack(path), UNEQUAL_CLIENTS)
