"""FedNova beside its authors' program, and beside NIID-Bench's.

Of github.com/JYWa/FedNova at 47b4e096dfb19dc43c728896fff335a5befb645d ran distoptim/FedNova.py with the communicate of
comm_helpers.py, in float64: three clients, 2 epochs of batches of 2 (4, 2 and 4 steps), lr 0.1, ratio as the examples.
Calls like add_(number, tensor), which PyTorch no longer has, were written as it wants them today; threads stood in for
the processes of all_reduce. Its script always sets weight_decay to 0.0001.

It differs from ours in three things. (1) With mu the weights of the gradients are counted as in ours, but tau_eff is
the mean of the steps, not of the 1-norms: each step of the server is longer by that. (2) With mu and momentum
its norm is (norm + counter) (1 - lr mu) + 1 in each step, both cases one after the other; ours is the 1-norm of what
the steps, which are the same, do. (3) With nesterov, which its script never sets, its norm is that of heavy ball.

Of github.com/Xtra-Computing/NIID-Bench at 61b901ab645e62391772e9898384c2c3485b7a6c ran, of experiments.py,
train_net_fednova, local_train_net_fednova and the rounds of fednova: lr 0.1, 2 epochs, batch_size 2, reg 0, rho 0.9, of
all clients as in the authors' program, with the same outcome, and of client 1 and then of 0 and 2.
"""

import pytest
import torch
from authors.servers import START, TWO_EPOCHS, assert_agrees, models, take_part, three_clients
from worlds import Tiny, rounds_with_rows

pytestmark = pytest.mark.usefixtures("_double")

RULE = ("algorithm=fednova", "local.lr=0.1", "rounds=2", *TWO_EPOCHS)
PLAIN = """
0.4570510946 -0.7566914305 0.2851735775 1.008678151 0.09879440175 -0.2070905539 0.7265370455 -0.5026219843
-0.2265370455 0.6276219843 0.03918150099 -0.101681501 0.417950508 -0.762009713 0.3175244309 1.015580501 0.07705648169
-0.1698811728 0.7053346697 -0.5057600492 -0.2053346697 0.6307600492 0.02256275479 -0.08506275479
"""
MOMENTUM = """
0.4053607689 -0.772890819 0.3179859659 1.024507619 0.0707336576 -0.1658298016 0.7068980726 -0.5138312548 -0.2068980726
0.6388312548 0.01987592801 -0.08237592801 0.3294980329 -0.7889939669 0.372538391 1.041883002 0.0349836016
-0.1044519631 0.6733146925 -0.5262513975 -0.1733146925 0.6512513975 0.005494758125 -0.06799475813
"""
DECAY = """
0.3876931466 -0.7440129779 0.3071502134 0.9866431426 0.06657915028 -0.1571023269 0.6791795296 -0.4946817185
-0.1982646816 0.6149104305 0.01792884957 -0.07804320558 0.3000358074 -0.7331835077 0.3480238944 0.9690282658
0.02922598757 -0.09247094585 0.6248442013 -0.4920944788 -0.1622860192 0.6077340243 0.001514243574 -0.05933401634
"""
SERVER_MOMENTUM = """
0.4570510946 -0.7566914305 0.2851735775 1.008678151 0.09879440175 -0.2070905539 0.7265370455 -0.5026219843
-0.2265370455 0.6276219843 0.03918150099 -0.101681501 0.3964760553 -0.7653554283 0.3351112196 1.019919577
0.06395368256 -0.1484264497 0.6936031924 -0.5070710414 -0.1936031924 0.6320710414 0.01090350529 -0.07340350529
"""
PULL = """
0.4572427912 -0.7560959313 0.2856416749 1.008269122 0.09868410812 -0.2065756372 0.7260500984 -0.5020318521
-0.2260500984 0.6270318521 0.03872653367 -0.1012265337 0.41828476 -0.7608589275 0.3185149387 1.014782835 0.07688071106
-0.168934861 0.7043570156 -0.504698126 -0.2043570156 0.629698126 0.02169865529 -0.08419865529
"""
NIID_BENCH = """
0.5485998164 -0.677070543 0.1792379434 0.9824277847 0.151192003 -0.2199712077 0.7047164525 -0.3994026149 -0.2047164525
0.5244026149 0.1226836794 -0.1851836794 0.3576039795 -0.7938002041 0.3389399858 1.04719232 0.0314659838 -0.1151677908
0.662483766 -0.5266716341 -0.162483766 0.6516716341 -0.02737936815 -0.03512063185
"""
BOTH = """
0.468035623 -0.7589304194 0.2742368084 1.00816466 0.1066254983 -0.2230508779 0.7368480265 -0.5067278688 -0.2368480265
0.6317278688 0.04687855267 -0.1093785527
"""
NESTEROV = """
0.3870938691 -0.7598650432 0.3342506579 1.023726976 0.06488145471 -0.1387436295 0.6904126329 -0.5028901105
-0.1904126329 0.6278901105 0.02170425988 -0.08420425988
"""
HEAVY = "local.momentum=0.9"


@pytest.mark.parametrize(
    ("words", "theirs"),
    [
        ((), PLAIN),
        ((HEAVY,), MOMENTUM),
        ((HEAVY, "engine=stacked"), MOMENTUM),
        ((HEAVY, "local.weight_decay=0.05"), DECAY),
        (("server_optimizer=momentum", "server_optimizer.beta=0.5"), SERVER_MOMENTUM),
    ],
)
def test_two_rounds(tiny: Tiny, tmp_path, words: tuple[str, ...], theirs: str):
    assert_agrees(models(three_clients(tiny, tmp_path, *RULE, *words)), theirs)


def test_with_a_pull_its_server_steps_farther(tiny: Tiny, tmp_path):
    """lr mu = 0.05, so that 4 steps have the norm 3.709875, and 2 the norm 1.95."""
    rate = (4 * 4 / 9 + 2 * 2 / 9 + 4 * 3 / 9) / (3.709875 * 4 / 9 + 1.95 * 2 / 9 + 3.709875 * 3 / 9)
    farther = ("server_optimizer=momentum", "server_optimizer.beta=0", f"server_optimizer.lr={rate}")
    assert_agrees(models(three_clients(tiny, tmp_path, *RULE, "local=prox", "local.mu=0.5", *farther)), PULL)


def heavy_norm(steps: int, pull: float) -> float:
    """The norm of its gradients' weights after so many steps with momentum 0.9."""
    counter = norm = 0.0
    for _ in range(steps):
        counter = 0.9 * counter + 1
        norm = (norm + counter) * (1 - pull) + (pull > 0)
    return norm


@pytest.mark.parametrize(
    ("words", "pull", "theirs"),
    [(("local=prox", "local.mu=0.5", HEAVY), 0.05, BOTH), ((HEAVY, "local.nesterov=true"), 0, NESTEROV)],
)
def test_two_norms_differ(tiny: Tiny, tmp_path, words: tuple[str, ...], pull: float, theirs: str):
    """The updates are the same: with their norms, and their tau_eff, they make the model of the first round."""
    _, _, sent = next(rounds_with_rows(three_clients(tiny, tmp_path, *RULE, *words)))
    steps, shares = torch.tensor([4.0, 2.0, 4.0]), torch.tensor([4.0, 2.0, 3.0]) / 9
    norms = torch.tensor([heavy_norm(int(count), pull) for count in steps])
    total = shares @ (steps if pull else norms)
    assert_agrees((torch.tensor(START) + total * (shares / norms) @ sent.delta)[None], theirs)


def test_two_rounds_of_some_clients_in_niid_bench(tiny: Tiny, tmp_path, monkeypatch):
    take_part(monkeypatch, [1], [0, 2])
    assert_agrees(models(three_clients(tiny, tmp_path, *RULE, HEAVY)), NIID_BENCH)
