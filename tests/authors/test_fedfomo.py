"""FedFomo beside its authors' program: what clients start from.

Of github.com/NVlabs/FedFomo at fe04f6641407bce4fc58ea3fbf8cb314f9af8629 ran Federation.compute_client_weights and
federate of federation.py, with compute_fomo_weights and compute_parameter_difference. A client was what they ask of it:
its first model, its model after a plain step on its own examples, and the mean loss of the examples that it judges by.
Each was sent the models of both others, and none of the server's means.

It agrees where baseline_model is current, model_delta_norm is l2_root and the network has one tensor of weights.
Elsewhere the program differs from ours in four things. (1) Its README sets baseline_model first_model: a client goes on
from the model that it had before its last training, w + sum_j p_j (w_j - w), gains and distances are to that one, and
its own trained model is one of the w_j. (2) Its norms are, by default, the sum of absolute differences (l1); the
squared distance (l2), or the sum over tensors of each one's Euclidean distance (l2_root). Ours is the Euclidean
distance of all entries, as in the paper. (3) The server's mean models, of all clients and of clusters that it makes,
are candidates, too. (4) Candidates are drawn: those with the highest weights so far, or with probability 0.3 and
falling any others; here all models are sent.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import torch
from authors.three_clients import CLIENTS, assert_agrees, first_model, gradient, matrix, mean_loss, network
from torch import nn

from fedexp.core.client_rows import ClientRows
from fedexp.parts.context import Context
from fedexp.parts.local.fedfomo import first_order_weights, mixed_models

pytestmark = pytest.mark.usefixtures("_double")

OWNERS = np.arange(3)
NEXT = (CLIENTS[1], CLIENTS[2], CLIENTS[0])  # each judges by the examples of the next
STARTS = """
1.13110291 -0.1824658928 -0.1614202202 0.4837725419 -0.3446826902 -0.0513066491
0.5202408085 -0.4296190186 -0.2260125246 0.3707133327 0.3307717161 0.3089056859
1.02600494 -0.432482935 -0.3074790265 0.6220465083 -0.09352591299 0.06043642671
"""
LAST_BY_TENSORS = """
0.7121248473 -0.2795937849 0.02722702131 0.7334151965 -0.342890526 0.2603513226 0.1692460037 -0.3282192292 0.190388087
0.9185590429 -0.4306956693 0.09955485022 -0.3330503127 0.5462222624 0.4459207698 0.03949126985 0.1344734069 -0.54547562
0.1370392793 0.1320266977 -0.2690659769
"""
LAST_BY_SQUARES = """
0.7108246122 -0.2852372529 0.0278256554 0.7376949505 -0.3478480209 0.2580817074 0.1661125774 -0.3260131518 0.1967446889
0.9186300758 -0.4361938569 0.1002678479 -0.3345499689 0.5463756352 0.4483096175 0.04091989306 0.1398182217 -0.5485774654
0.1372378048 0.1397707019 -0.2770085068
"""
AS_IN_README = """
0.5561803777 -0.2437299819 0.1928568652 0.7354882463 -0.4487155922 0.1643348326 0.1436506512 -0.2748979208 0.07907634897
0.7919677192 -0.4693573218 0.2106618341 -0.2671304151 0.511184097 0.3869444096 0.1001626959 0.2081732248 -0.5976062437
0.03377899151 0.1080007168 -0.1417797083
0.5198663242 -0.212740287 0.2433434891 0.7151781114 -0.4639232849 0.1278300466 0.1206979059 -0.2355836545 0.01382773606
0.7509448976 -0.4536425939 0.2392209465 -0.2403179658 0.4844407035 0.3640295392 0.1143730682 0.2192018904 -0.6032504857
-0.03825134691 0.08493708744 -0.04668574053
0.5436187231 -0.2798447037 0.2019358906 0.7631874745 -0.4845815753 0.1450316108 0.1196792608 -0.2557611584 0.1167933296
0.7884566755 -0.5059552603 0.2183939607 -0.2749141982 0.5096377268 0.4012754025 0.1114575227 0.2463175335 -0.6196693632
0.02812592713 0.1594568658 -0.187582793
"""


def trained_models(make: Callable[[], nn.Module], step: float) -> torch.Tensor:
    """The clients' models after a plain step on their own examples, `[3, D]`."""
    first = first_model(make)
    return torch.stack([first - step * gradient(first, client, make) for client in CLIENTS])


def test_starts():
    models = trained_models(matrix, 1.0)

    def judge(rows: torch.Tensor, holder: np.ndarray, owner: np.ndarray) -> np.ndarray:  # noqa: ARG001
        return np.array([[float(mean_loss(row, NEXT[client], matrix)) for row in rows] for client in owner])

    layout, data = SimpleNamespace(parameters=6), SimpleNamespace(judge=judge)
    ctx = cast(Context, SimpleNamespace(layout=layout, clients_data=data))
    assert_agrees(mixed_models(models, OWNERS, ClientRows(torch.arange(3), models), ctx), STARTS)


def start_of(base: torch.Tensor, models: torch.Tensor, losses: list[float], distances: list[float]) -> torch.Tensor:
    """What a client goes on from, given the losses of its base and of the models, and the models' distances."""
    weights = first_order_weights(np.array(losses[:1]), np.array([losses[1:]]), np.array([distances]))
    return base + torch.from_numpy(weights[0]) @ (models - base)


@pytest.mark.parametrize(("norm", "numbers"), [("l2_root", LAST_BY_TENSORS), ("l2", LAST_BY_SQUARES)])
def test_its_norms_of_several_tensors(norm: str, numbers: str):
    """Of the last client, which likes both other models."""
    *others, base = trained_models(network, 1.0)
    losses = [float(mean_loss(row, NEXT[2])) for row in (base, *others)]
    sizes = [parameter.numel() for parameter in network().parameters()]
    lengths = [torch.stack([part.norm() for part in (row - base).split(sizes)]) for row in others]
    distances = [float(parts.sum() if norm == "l2_root" else parts.square().sum()) for parts in lengths]
    assert_agrees(start_of(base, torch.stack(others), losses, distances), numbers)


def test_its_readme_goes_on_from_the_model_before_the_training():
    """Each judges by its own examples and those of the next."""
    models, first, starts = trained_models(network, 0.25), first_model(), []
    for own_examples, following in zip(CLIENTS, NEXT, strict=True):
        sizes = torch.tensor([float(part.stop - part.start) for part in (own_examples, following)])
        shares = sizes / sizes.sum()
        losses = [
            float(shares @ torch.stack([mean_loss(row, part) for part in (own_examples, following)]))
            for row in (first, *models)
        ]
        starts.append(start_of(first, models, losses, [float((row - first).abs().sum()) for row in models]))
    assert_agrees(torch.stack(starts), AS_IN_README)
