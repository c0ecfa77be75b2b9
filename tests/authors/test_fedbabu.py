"""FedBABU beside its authors' program.

Of github.com/jhoon-oh/FedBABU at e34c15b4288224f0af1bc13670bc0cdc373c9576 ran main_fed.py whole, with local_upt_part
and aggr_part body, and LocalUpdate of models/Update.py, on these examples. The network had the names that it knows the
head by. Set as here: full batches, two local epochs, rate 0.5, momentum 0.5; once more with momentum 0.9 and weight
decay 0.125. Its rate falls to a tenth after a half and three quarters of all rounds: it ran for eight rounds, of which
the first two are compared.

All agrees: the averaged body in both rounds, under a head that keeps its bytes in the program as here. Its mean is that
of clients alike, so ours has aggregator.weighting=uniform, where algorithm=fedbabu weighs by examples. Its tuning of
the clients' models before they are measured is in a notebook and did not run.
"""

import pytest
import torch
from authors.three_clients import BODY, HEAD, assert_agrees, first_model, states, three_clients
from worlds import Tiny

pytestmark = pytest.mark.usefixtures("_double")

WORDS = (
    *("local=fedbabu", "local.lr=0.5", "local.epochs=2", "local.batch_size=full"),
    *("aggregator.weighting=uniform", "rounds=2"),
)
FIRST = """
0.6430510905 -0.1834240947 0.118289348 0.6503339388 -0.318639938 0.1865652376 0.111685836 -0.2415908564 -0.01030057427
"""
SECOND = """
0.7492913351 -0.1448574695 -0.005633765113 0.5571480854 -0.156135499 0.2489122398 0.08818988884 -0.2297954082
-0.1042388479
"""
SECOND_WITH_DECAY = """
0.5962034163 -0.07350596917 -0.1027759886 0.3282734046 -0.01540661404 0.2149927445 0.05373337167 -0.1457070009
-0.1388363645
"""


@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_two_rounds(tiny: Tiny, tmp_path, engine: str):
    first, second = states(three_clients(tiny, tmp_path, *WORDS, "local.momentum=0.5", f"engine={engine}"))
    assert_agrees(first.models[0].flat[BODY], FIRST)
    assert_agrees(second.models[0].flat[BODY], SECOND)
    assert torch.equal(second.models[0].flat[HEAD], first_model()[HEAD])


def test_weight_decay(tiny: Tiny, tmp_path):
    decay = ("local.momentum=0.9", "local.weight_decay=0.125")
    _, second = states(three_clients(tiny, tmp_path, *WORDS, *decay))
    assert_agrees(second.models[0].flat[BODY], SECOND_WITH_DECAY)
