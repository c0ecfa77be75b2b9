"""MIFA beside its authors' program.

Of github.com/hmgxr128/MIFA_code at c1099d97a3d47bd8ed94bb1daeb28d20a3b89aa4 ran FDU_nowait_Trainer of
src/trainers/fdu_no_wait.py with Client, Worker, base.py and GD, in float64: clients come with probability 0.6, which
with seed 5 lets 0, then 1, then 0 and 2 take part. lr 0.1, local_step 2 (epochs), batch_size 2, wd 0.05 or 0; loaders
did not shuffle. The rate stayed where it was in the first run.

It differs from ours where the clients' rate falls, as it does in each of its rounds: it remembers updates divided by
the rate with which they were made, and multiplies them by the present one, so an old update gets shorter, too; ours
counts it as it came. The second run is as its program is, rate 0.1 and then 0.05. Its other trainer, of fdu.py, does
nothing until each client was there, and then lets all of them train at once before the first step.
"""

import pytest
import torch
from authors.servers import START, TWO_EPOCHS, assert_agrees, models, take_part, three_clients
from worlds import Tiny

pytestmark = pytest.mark.usefixtures("_double")

RULE = ("algorithm=mifa", "local.lr=0.1", *TWO_EPOCHS)
THREE_ROUNDS = """
0.4631662662 -0.7478636952 0.2858092375 0.9895289858 0.1124071085 -0.2358757873 0.7284529712 -0.5049131307
-0.2317613878 0.6290860266 0.04674424495 -0.1088306929 0.4357937449 -0.7278646139 0.304166594 0.9720322798
0.1044982613 -0.2136859458 0.6939752448 -0.4848040192 -0.2022435774 0.607736936 0.04425920256 -0.105725661
0.3946049407 -0.7255792329 0.3263802762 0.9672688263 0.08001935906 -0.1730165521 0.6693288265 -0.4865816004
-0.1857560715 0.6074747892 0.02202860954 -0.08247520393
"""
FALLING_RATE = """
0.4660299578 -0.7528256822 0.2880322384 0.9959811923 0.1130733175 -0.2372784472 0.7330728953 -0.5082212035
-0.2330728953 0.6332212035 0.04690798888 -0.1094079889 0.4545637179 -0.7465186113 0.2986360335 0.9920864919
0.1096521971 -0.2271910841 0.7190918687 -0.5003938201 -0.2190918687 0.6253938201 0.04605244191 -0.1085524419
"""


def test_three_rounds_of_some_clients(tiny: Tiny, tmp_path, monkeypatch):
    take_part(monkeypatch, [0], [1], [0, 2])
    assert_agrees(models(three_clients(tiny, tmp_path, *RULE, "local.weight_decay=0.05", "rounds=3")), THREE_ROUNDS)


def test_with_half_the_rate_its_old_update_is_half_as_long(tiny: Tiny, tmp_path, monkeypatch):
    """In the second round client 0, which made all of the first step, is remembered."""
    take_part(monkeypatch, [0], [1])
    halved = ("schedule=exponential", "schedule.gamma=0.5", "rounds=2")
    first, second = models(three_clients(tiny, tmp_path, *RULE, *halved))
    assert_agrees(torch.stack([first, second - (first - torch.tensor(START)) / 2]), FALLING_RATE)
