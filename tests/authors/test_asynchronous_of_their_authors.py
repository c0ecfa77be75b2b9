"""FedBuff, FedAsync and FADAS at the server, beside published programs; rows and ages are made up.

Of github.com/facebookresearch/FLSim, by FedBuff's authors, at 7311f2db471f89f14a0c8c9ea1c9584171677f5a ran
FedAvgWithLRFedBuffAggregator (lr 0.1, buffer_size 2) and FedAvgWithLRAsyncAggregator with fed_async_aggregation (lr
0.6), of optimizers/async_aggregators.py, with AsyncWeight and PolynomialStalenessWeight(exponent 0.5), in float64. Its
weights are 1 at avg_staleness, 1 by default, where ours are 1 at age 0; and it adds up the updates of a buffer where
the paper, and ours, divides by their number B. So its rate 0.1 is ours of 0.1 sqrt(2) B. For FedAsync avg_staleness
was 0; its authors' program (github.com/xcgoner/async_fl, 912ecf3, MXNet) has the same factor with --alpha-type power,
and was read, not run.

Of github.com/yujiaw98/FADAS at 8c4df2367b1b4ef485d0334e19335260a8547417 ran update_model_inplace of update.py with
fedams and average_parameter of utils.py: lr 0.1, beta1 0.9, beta2 0.99, eps 0.001, tauc 1, max_init 0, in float64. It
differs from ours, which is written after the paper, in two things. (1) It corrects both moments for their beginning at
zero, as Adam does. (2) Where the oldest update is older than tauc, its rate is lr / age; ours is min(lr, 1 / age). It
takes all updates of a buffer as differences to the model of the round in which they were asked, though all clients but
the last began with the model before. Of CA2FL's authors no program was found.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from authors.servers import three_clients
from authors.three_clients import read_numbers
from worlds import Tiny, folded, uploads_like

from fedexp.core.values import Layout, Weights
from fedexp.parts.pacing.buffered import Buffered
from fedexp.parts.server_optimizer.amsgrad import AMSGrad
from fedexp.simulation import context
from fedexp.simulation.world import World

pytestmark = pytest.mark.usefixtures("_double")

ROWS = (
    ((0.5, -0.25, 0.125), (0.25, 0.75, -0.5)),
    ((-1.0, 0.5, 0.25), (0.125, -0.375, 0.0625)),
    ((0.25, 0.25, -0.125), (-0.5, 0.125, 0.75)),
)
AGES = ((0, 0), (1, 0), (2, 4))
BUFFERS = """
0.6060660172 -0.6792893219 0.1969669914 0.5237436867 -0.6823223305 0.2308058262 0.5125333246 -0.6540042218
0.2680337838
"""
MOMENTUM = """
0.6060660172 -0.6792893219 0.1969669914 0.6192031022 -0.6186827202 0.1830761184 0.6198161166 -0.5358186699
0.2078022904
"""
MIXED = """
0.8 -0.9 0.325 0.7787867966 -0.5181623382 0.08104816049 0.1787867966 -0.2181623382 0.2310481605 0.4372826329
-0.5842616433 0.2852446675
"""
ADAPTIVE = """
0.5997340426 -0.9003984064 0.150530504 0.5868532993 -0.8176275249 0.1467387248 0.5810335127 -0.7953446684 0.1588012585
"""


def step(world: World, rows: torch.Tensor, ages: Sequence[int], memory: dict, offset: torch.Tensor | None = None):
    """The world that begins with the model after a step, and what is remembered."""
    delta = torch.zeros(len(rows), world.layout.size)
    delta[:, :3] = rows
    uploads, pacing = uploads_like(delta), world.exp.pacing
    assert isinstance(pacing, Buffered)
    arrived = {"owner": torch.from_numpy(uploads.owner), "factor": torch.from_numpy(pacing.factors(np.array(ages)))}
    arrived["begun"] = -torch.tensor(ages)
    uploads, _ = pacing.discount(uploads, {"arrived": arrived, "offset": offset}, context.make_context(world, 1))
    flat, memory = folded(world, uploads, memory)
    return replace(world, first=Weights(flat, world.layout)), memory


def assert_three(ours: Sequence[torch.Tensor], text: str) -> None:
    """Checks three numbers of each model."""
    theirs = read_numbers(text).reshape(-1, 3)
    torch.testing.assert_close(torch.stack([model[:3] for model in ours]), theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(("beta", "theirs"), [(0, BUFFERS), (0.9, MOMENTUM)])
def test_three_buffers_of_two(tiny: Tiny, tmp_path, beta: float, theirs: str):
    rate = 0.1 * 2**0.5 * 2
    words = (f"server_optimizer.lr={rate}", f"server_optimizer.beta={beta}", "pacing.buffer=2")
    world, memory, path = three_clients(tiny, tmp_path, "algorithm=fedbuff", *words), {}, []
    for rows, ages in zip(ROWS, AGES, strict=True):
        world, memory = step(world, torch.tensor(rows), ages, memory)
        path.append(world.first.flat)
    assert_three(path, theirs)


def test_four_models_mixed_in_one_by_one(tiny: Tiny, tmp_path):
    world = three_clients(tiny, tmp_path, "algorithm=fedasync", "pacing.mixing=0.6")
    versions, memory = [world.first.flat], {}
    for row, age in zip([row for rows in ROWS for row in rows], (0, 1, 0, 2), strict=False):
        offset = (versions[-1 - age] - versions[-1])[None]
        world, memory = step(world, torch.tensor([row]), [age], memory, offset)
        versions.append(world.first.flat)
    assert_three(versions[1:], MIXED)


def test_adaptive_steps_but_for_the_correction_and_the_rate():
    weights = Weights(torch.tensor([0.5, -1.0, 0.25]), Layout(("w",), ((3,),), 1))
    pacing, memory, path = Buffered(clients=3, slow_after=1), {}, []
    for number, (rows, ages) in enumerate(zip(ROWS, AGES, strict=True), start=1):
        correction, oldest = (1 - 0.99**number) ** 0.5, max(ages)
        slowed = 1 / oldest if oldest > 1 else 1
        rule = AMSGrad(lr=0.1 * slowed * correction / (1 - 0.9**number), beta2=0.99, tau=0.001 * correction)
        proposal = Weights(weights.flat + torch.tensor(rows).mean(dim=0), weights.layout)
        weights, memory = rule.step(weights, proposal, memory)
        path.append(weights.flat)
    assert_three(path, ADAPTIVE)
    assert [pacing.server_rate(lr, {"columns": {"most_stale": 4}}) for lr in (0.1, 1.0)] == [0.1, 0.25]
