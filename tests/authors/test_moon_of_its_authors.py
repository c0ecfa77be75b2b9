"""MOON beside its authors' program.

Of github.com/QinbinLi/MOON at 8fcba3c4efc9a47eb24687a91ba94cfb2005103f ran, of main.py, train_net_fedcon,
local_train_net and the rounds of moon, on the CPU and in float64: lr 0.1, its momentum of 0.9, 2 epochs, batch_size 2,
model_buffer_size 1 with FIFO, load_first_net; mu 5, temperature 0.5 and reg 0 with all clients, then mu 2, temperature
0.8 and reg 0.05 with all, 1, 0 and 1, 0 and 2. The network is the one of these tests, and its tanh units are the
features; their projection head ends in what the last layer is given, too. Loaders did not shuffle.

It differs from ours in one thing: a client that first comes later than the first round is compared with a network of
its own that never trained, ours with the first model. Here all come in the first round, which is SGD in both.
"""

import pytest
from authors.servers import TWO_EPOCHS, assert_agrees, models, take_part, three_clients
from worlds import Tiny

pytestmark = pytest.mark.usefixtures("_double")

RULE = ("local=moon", "local.lr=0.1", "local.momentum=0.9", *TWO_EPOCHS)
ALL_CLIENTS = """
0.3656282883 -0.811325721 0.3634203855 1.037146437 0.04874031786 -0.1650082137 0.7205688753 -0.5636915814
-0.2205688753 0.6886915814 -0.0160631406 -0.0464368594 0.4224434847 -0.7241239865 0.3038600168 1.141068777
0.09937827804 -0.03683249409 0.7009642125 -0.6168365177 -0.2009642125 0.7418365177 -0.04941840122 -0.01308159878
0.3566978112 -0.814043085 0.5547595342 1.066364756 -0.1346022357 -0.278669055 0.6772852298 -0.6727140461 -0.1772852298
0.7977140461 -0.06611091228 0.00361091228
"""
SOME_CLIENTS = """
0.3482594411 -0.7823375865 0.3522829066 0.9993925201 0.04474907629 -0.1563655058 0.6929277694 -0.5443928694
-0.2119972476 0.6646254999 -0.01780999667 -0.04230631855 0.38384835 -0.7277530051 0.3218246572 0.9453150575
0.05237538984 -0.1689668016 0.6215126803 -0.4272181109 -0.1475436278 0.545710374 0.049425138 -0.1086712696
0.3607565816 -0.6616086437 0.3153700023 0.9490142003 0.04753398358 -0.09137309244 0.5539073798 -0.4447805378
-0.09641272913 0.5591542005 0.0181769159 -0.07536374724 0.293069846 -0.620612819 0.4225426258 0.9724593315
0.06131938507 -0.06051381758 0.5366727463 -0.5592736196 -0.09971964518 0.6685118949 -0.05742562424 0.002806486602
"""


@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_three_rounds_of_all_clients(tiny: Tiny, tmp_path, engine: str):
    words = ("local.mu=5", "local.temperature=0.5", "rounds=3", f"engine={engine}")
    assert_agrees(models(three_clients(tiny, tmp_path, *RULE, *words)), ALL_CLIENTS)


def test_four_rounds_of_some_clients(tiny: Tiny, tmp_path, monkeypatch):
    take_part(monkeypatch, [0, 1, 2], [1], [0, 1], [0, 2])
    words = ("local.mu=2", "local.temperature=0.8", "local.weight_decay=0.05", "rounds=4")
    assert_agrees(models(three_clients(tiny, tmp_path, *RULE, *words)), SOME_CLIENTS)
