"""pFedMe beside its authors' program.

Of github.com/CharlieDinh/pFedMe at caf24b1f954d4381bd9b4d104ee7eff389e1489b ran UserpFedMe.train with pFedMeOptimizer,
and of the server send_parameters and persionalized_aggregate_parameters. Set as here: lamda 2, personal rate 0.25,
rate 0.3, K = 3. To make it the same as ours, its optimizer's mu was 0, and a client had one batch in a round.

It differs from ours in three things, of which the paper leaves (2) open. (1) Its optimizer adds mu theta with mu =
0.001 to the gradient of theta; no option sets it, and the paper's algorithm has no such term. (2) Its theta goes on
from the batch before, ours begins at w in each batch. (3) What it measures as the personal model are the very tensors
that take on w at the end of a client's training: so it measures w, and ours theta. It also lets all clients train in
each round, of which only the selected ones are averaged.
"""

import pytest
import torch
from authors.three_clients import (
    CLIENTS,
    assert_agrees,
    assert_same,
    first_model,
    gradient,
    own_models,
    states,
    three_clients,
)
from worlds import Tiny

pytestmark = pytest.mark.usefixtures("_double")

RULE = ("local=pfedme", "local.lr=0.3", "local.lam=2", "local.theta_lr=0.25", "local.inner_steps=3")
FULL = ("local.batch_size=full", "local.epochs=1", "aggregator.weighting=num_samples")
FIRST = """
0.5310502847 -0.2457687237 0.2260697946 0.7411248466 -0.4758617967 0.1313350013 0.117697027 -0.2444633851 0.05890675873
0.7736647846 -0.4871780978 0.2358746687 -0.2593526053 0.4975544668 0.3842905806 0.1106878207 0.239623631 -0.6201652493
-0.007490169476 0.1206717921 -0.1131816226
"""
THETAS = """
0.5805842563 -0.3048751528 0.1595866182 0.7728242039 -0.4792868338 0.163796878 0.1187776695 -0.26421785 0.1524811977
0.8240982049 -0.517401845 0.1978860141 -0.3019825499 0.5228478865 0.4259098079 0.102884345 0.2445539585 -0.6237958221
0.05317034474 0.1798650791 -0.2330354239
0.6140141454 -0.1556664435 0.1673259002 0.6746499012 -0.3423905611 0.2204554966 0.1851761124 -0.3260534615
-0.01740581214 0.8374105474 -0.3887856651 0.2026510558 -0.2579088459 0.5244100025 0.3634778518 0.04549829858
0.1143756626 -0.5661289076 0.04671683956 -0.01249863067 -0.0342182089
0.4717963182 -0.2185657858 0.306016215 0.7254253605 -0.5119994978 0.04130883793 0.05666416737 -0.1526574844
-0.02217059514 0.7112526184 -0.486830919 0.2804246209 -0.2221803959 0.4410351504 0.3612545913 0.1359277776 0.2957957685
-0.6416792122 -0.1394892001 0.1218712752 0.01761792486
"""
SECOND = """
0.5615364859 -0.2418763039 0.2034990731 0.7323625212 -0.4530393905 0.1377756808 0.110137082 -0.2393236123 0.05511489393
0.7976080733 -0.4756864876 0.2235995811 -0.2684338598 0.4958209855 0.3930132577 0.09582578657 0.2298655021 -0.6166128388
-0.01473572605 0.1164637453 -0.1017280193
"""
MIXED = """
0.5370664112 -0.2450396042 0.2217744659 0.7393870266 -0.4715048086 0.1326420021 0.1161404617 -0.2434993796 0.05811508542
0.7785091342 -0.4850983694 0.2337223473 -0.2611283024 0.497325715 0.385940719 0.1076191682 0.2377726544 -0.6196630663
-0.008898782452 0.119847648 -0.1109488656
"""
TWO_BATCHES = """
0.5651373433 -0.2452782137 0.1978648596 0.7417063492 -0.4430938902 0.1250448072 0.1110744446 -0.2421051399 0.03981749775
0.8080839518 -0.4836668293 0.2229672239 -0.2694935559 0.4942280612 0.4028591244 0.08640960416 0.2394387681 -0.6258263483
-0.01015981777 0.1010264535 -0.09086663571
"""
WITH_DECAY = """
0.530907742 -0.2457113466 0.2260125142 0.7409405868 -0.4757502952 0.1313013863 0.1176710779 -0.2444019775 0.0588931576
0.7734597777 -0.4870608991 0.2358165103 -0.2592882961 0.4974304081 0.3841922407 0.1106645028 0.2395648848 -0.6200087511
-0.007484721797 0.120641734 -0.1131570122
"""


@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_two_rounds(tiny: Tiny, tmp_path, engine: str):
    world = three_clients(tiny, tmp_path, *RULE, *FULL, f"engine={engine}")
    first, second = states(world)
    assert_agrees(first.models[0].flat, FIRST)
    assert_agrees(own_models(world, first), THETAS)
    assert_agrees(second.models[0].flat, SECOND)


def test_mixing_by_beta(tiny: Tiny, tmp_path):
    mixing = ("server_optimizer=momentum", "server_optimizer.beta=0", "server_optimizer.lr=0.6")
    _, second = states(three_clients(tiny, tmp_path, *RULE, *FULL, *mixing))
    assert_agrees(second.models[0].flat, MIXED)


def mean_of_clients(batches: tuple[tuple[slice, ...], ...], mu: float, goes_on: bool) -> torch.Tensor:
    """The mean model after one round, written out; theta goes on from the batch before, or begins at w again."""
    mean = torch.zeros(21)
    for share, client in zip((4 / 9, 2 / 9, 3 / 9), batches, strict=True):
        w = theta = first_model()
        for batch in client:
            theta = theta if goes_on else w
            for _ in range(3):
                theta = theta - 0.25 * (gradient(theta, batch) + 2 * (theta - w) + mu * theta)
            w = w - 0.3 * 2 * (w - theta)
        mean += share * w
    return mean


def test_where_theta_begins_is_the_difference_in_several_batches(tiny: Tiny, tmp_path):
    """Two batches of at most two examples at every client."""
    two = ("local.epochs=null", "local.steps=2", "local.batch_size=2", "local.order=file")
    ours = states(three_clients(tiny, tmp_path, *RULE, *two, "aggregator.weighting=num_samples"))[0].models[0].flat
    batches = (slice(0, 2), slice(2, 4)), (slice(4, 6), slice(4, 6)), (slice(6, 8), slice(8, 9))
    assert_same(ours, mean_of_clients(batches, 0.0, goes_on=False))
    assert_agrees(mean_of_clients(batches, 0.0, goes_on=True), TWO_BATCHES)


def test_mu_is_a_decay_of_theta():
    whole = tuple((client,) for client in CLIENTS)
    assert_agrees(mean_of_clients(whole, 0.001, goes_on=True), WITH_DECAY)
