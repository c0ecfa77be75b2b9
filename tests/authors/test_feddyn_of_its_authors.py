"""FedDyn beside its authors' program.

Of github.com/alpemreacar/FedDyn at 48a19fac440ef079ce563da8e0c2896f8256fef9 ran utils_methods.train_FedDyn, with all
that it calls in utils_general, in float64 in place of float32: clients draw from act_prob 0.6 and rand_seed 13, which
let 1, then 0, then 1 and 2 take part. learning_rate 0.1, alpha_coef 0.2, batch_size 2, epoch 2, lr_decay_per_round 1
and weight_decay 0 or 0.05. Its loaders do not shuffle here. Compared is its cloud model (cld), from which clients
start; what it evaluates are the means of the active and of all clients' last models. It clips gradients at 10, longer
than any of these.

It differs from ours in a client's alpha, which it divides by the client's examples over the mean of all clients': the
same where all have as many, as in the first two runs. What the server adds to the mean has no alpha in it.
"""

import pytest
from authors.servers import EQUAL_OWNERS, TWO_EPOCHS, assert_agrees, models, take_part, three_clients
from worlds import Tiny

pytestmark = pytest.mark.usefixtures("_double")

RULE = ("algorithm=feddyn", "local.lr=0.1", *TWO_EPOCHS)
THREE_ROUNDS = """
0.5109119421 -0.6032692638 0.252023036 0.9306649001 0.136505348 -0.154131809 0.5790036651 -0.2887200139 -0.07900366511
0.4137200139 0.1260228081 -0.1885228081 0.4339127162 -0.584473049 0.3244738043 0.9170941536 0.1791006697 -0.2051937728
0.5062222808 -0.3079777896 -0.006222280769 0.4329777896 0.2201312329 -0.2826312329 0.3957475383 -0.5622493848
0.3588342788 0.9337728826 0.1408280828 -0.09439361555 0.4182486212 -0.2612093516 0.08175137884 0.3862093516
0.1535510672 -0.2160510672
"""
WITH_DECAY = """
0.498222851 -0.5852567121 0.2451208228 0.9047811824 0.1335511076 -0.1501142897 0.5625827026 -0.278687302
-0.07542431723 0.4004768984 0.1240067528 -0.1849015509 0.4085113331 -0.5469704195 0.3072631792 0.8628565894
0.170944701 -0.1928122103 0.4734358159 -0.2872414969 -0.001999634603 0.4051005422 0.2150842675 -0.2740137901
0.3534951329 -0.5000360208 0.3284338767 0.8393825496 0.1286604901 -0.08155101296 0.3685990844 -0.231721596
0.08198214033 0.3443669022 0.1385280105 -0.1948506636
"""
UNEQUAL = """
0.5439962059 -0.6838358879 0.1864322739 0.9844805438 0.1488208826 -0.2228194426 0.7098788343 -0.4096270817
-0.2098788343 0.5346270817 0.1163284331 -0.1788284331 0.4274706792 -0.6838892047 0.3068998551 0.9736920594
0.1071360391 -0.1649395582 0.6238300729 -0.4201964994 -0.1238300729 0.5451964994 0.05652633155 -0.1190263315
0.393212374 -0.6960899286 0.313435688 1.009119075 0.06651962876 -0.08190177954 0.6007363535 -0.4190000802
-0.1007363535 0.5440000802 0.01571043612 -0.07821043612
"""


@pytest.mark.parametrize(
    ("decay", "engine", "theirs"), [(0, "loop", THREE_ROUNDS), (0, "stacked", THREE_ROUNDS), (0.05, "loop", WITH_DECAY)]
)
def test_three_rounds_of_some_of_the_clients(tiny: Tiny, tmp_path, monkeypatch, decay: float, engine: str, theirs: str):
    take_part(monkeypatch, [1], [0], [1, 2])
    words = ("rounds=3", "local.alpha=0.2", f"local.weight_decay={decay}", f"engine={engine}")
    assert_agrees(models(three_clients(tiny, tmp_path, *RULE, *words, owners=EQUAL_OWNERS)), theirs)


def test_a_client_with_fewer_examples_has_a_larger_alpha(tiny: Tiny, tmp_path, monkeypatch):
    """Client 1 has 2 of 9 examples, 2/3 of the mean: its alpha is 0.2 / (2/3)."""
    take_part(monkeypatch, [1])
    ours = models(three_clients(tiny, tmp_path, *RULE, "rounds=1", "local.alpha=0.3"))
    assert_agrees(ours, " ".join(UNEQUAL.split()[:12]))
