"""FedMGDA+ and CA2FL at the server beside unofficial programs for FLGo; rows are made up.

Of neither authors could a program be had. Of github.com/WwZzz/easyFL at ea07f1d082efacca2eff27ee401a7ab4ec604825 ran
the Server of flgo/algorithm/fedmgda.py with cvxopt, whose tolerances were set to 1e-13, in float64: eta 1, epsilon 0.1
and 1, clients of 4, 2, 3 and 1 examples. It adds 1e-8 to lengths, ours nothing; else nothing differs.

Of github.com/LiwenWang919/FedGMD at 43ff4d6ed8ca66fcd1742bbcd42a8bece6ca1faf ran the Server of
resources/algorithm/ca2fl.py, in float64: eta 1, three clients, a step after two uploads. Nothing differs. CA2FL's step
is FedVARP's, of whose authors no program could be had either.
"""

import numpy as np
import pytest
import torch
from authors.servers import START, three_clients
from authors.three_clients import read_numbers
from torch.nn.functional import pad
from worlds import Tiny, folded, uploads_like, world_of

pytestmark = pytest.mark.usefixtures("_double")

ROWS = ((0.5, -0.25, 0.125, 0.75), (0.25, 0.75, -0.5, 1.5), (-0.5, -0.25, 0.25, -0.125), (0.0625, 0.0, 0.03125, 0.125))
NARROW = """
-0.1186297071 -0.1121927181 0.1148831545 0.4129742628
"""
WIDE = """
-0.2284059197 -0.08782289089 0.112913262 0.347646808
"""
BUFFER_CLIENTS = ((0, 1), (1, 2), (0, 1))
BUFFER_ROWS = (
    ((0.5, -0.25, 0.125), (0.25, 0.75, -0.5)),
    ((-1.0, 0.5, 0.25), (0.125, -0.375, 0.0625)),
    ((0.25, 0.25, -0.125), (-0.5, 0.125, 0.75)),
)
CALIBRATED = """
0.875 -0.5 0.0625 0.5625 -0.6458333333 0.34375 0.5625 -0.625 0.6145833333
"""


@pytest.mark.parametrize(("eps", "theirs"), [(0.1, NARROW), (1, WIDE)], ids=["narrow", "wide"])
def test_a_step_near_the_shares(tiny: Tiny, eps: float, theirs: str):
    world = world_of(tiny("aggregator=fedmgda", f"aggregator.eps={eps}", "aggregator.weighting=num_samples"))
    rows = pad(torch.tensor(ROWS), (0, world.layout.size - 4))
    uploads = uploads_like(rows, examples=np.array([4, 2, 3, 1]))
    moved = folded(world, uploads)[0] - world.first.flat
    torch.testing.assert_close(moved[:4], read_numbers(theirs), rtol=1e-7, atol=0)


def test_three_buffers_of_two_clients(tiny: Tiny, tmp_path):
    world = three_clients(tiny, tmp_path, "aggregator=fedvarp")
    model, memory, path = torch.tensor(START), {}, []
    for clients, rows in zip(BUFFER_CLIENTS, BUFFER_ROWS, strict=True):
        after, memory = folded(world, uploads_like(pad(torch.tensor(rows), (0, 9)), list(clients)), memory)
        model = model + after - world.first.flat
        path.append(model[:3])
    theirs = read_numbers(CALIBRATED).reshape(3, 3)
    torch.testing.assert_close(torch.stack(path), theirs, rtol=1e-9, atol=1e-10)
