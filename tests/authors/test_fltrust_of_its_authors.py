"""FLTrust's server beside a function that is said to be its authors'; rows are made up.

The authors' page has a program for MXNet that could not be fetched. A function fltrust(epoch, gradients, net, lr, f,
byz) of MXNet, as theirs is called, is found in public repositories; whether it is their very text could not be checked.
It ran in float64 with NumPy's operations for MXNet's, byz doing nothing, lr 1 and gradients that are these rows with
the other sign. It adds 1e-9 to each length and to the sum of the cosines, ours adds nothing; else nothing differs.
"""

import pytest
import torch
from authors.three_clients import read_numbers
from worlds import Tiny, folded, uploads_like, world_of

from fedexp.simulation.context_views import PublicQueries

pytestmark = pytest.mark.usefixtures("_double")

SERVER = (0.25, 0.125, -0.0625, 0.5)
ROWS = ((0.5, -0.25, 0.125, 0.75), (0.25, 0.75, -0.5, 1.5), (-0.5, -0.25, 0.25, -0.125), (0.0625, 0.0, 0.03125, 0.125))
STEP = """
0.2102929126 0.03553000298 0.01143199906 0.483985693
"""


def test_a_step(tiny: Tiny, monkeypatch: pytest.MonkeyPatch):
    """The third client is not trusted."""

    def train(_: PublicQueries, row: torch.Tensor) -> torch.Tensor:
        return row + torch.nn.functional.pad(torch.tensor(SERVER), (0, len(row) - 4))

    monkeypatch.setattr(PublicQueries, "train", train)
    world = world_of(tiny("aggregator=fltrust", "scenario.public_fraction=0.25"))
    rows = torch.nn.functional.pad(torch.tensor(ROWS), (0, world.layout.size - 4))
    model, memory = folded(world, uploads_like(rows))
    moved = model - world.first.flat
    torch.testing.assert_close(moved[:4], read_numbers(STEP), rtol=1e-7, atol=0)
    assert not moved[4:].any()
    assert memory["aggregator"]["columns"]["trusted"] == 3
