"""TERM over clients beside its authors' program.

Of github.com/litian96/TERM at ac3c01db53b24404459ad3840efc4dcd9328eb26 ran the Server of
fair_flearn/flearn/trainers/tilting.py with the aggregate of fedbase.py; a network in PyTorch stood in for its
TensorFlow model, in float64. learning_rate 0.1, num_epochs 2, batch_size 2, all three clients, t 1, 5 and -2; its
clients shuffle, here they do not.

Weights go with exp(t F_k) of the received model's exact losses in both. It differs from ours in how long a step is, by
two things. (1) It divides the weights of C clients so that they sum to one, and then takes the mean of C models: a step
is 1/C of ours. (2) It divides not by this round's mean m of exp(t (F_k - max F)), but by z <- z / 2 + m / 2, z zero at
first: the first step is twice as long, and later ones follow the rounds before. With both a step of the server is
m / (C z) times ours.
"""

import pytest
import torch
from authors.servers import START, TWO_EPOCHS, assert_agrees, losses, models, numbers, three_clients
from worlds import Tiny

pytestmark = pytest.mark.usefixtures("_double")

RULE = ("algorithm=term", "aggregator.weighting=uniform", "local.lr=0.1", *TWO_EPOCHS)
FIRST_RATE = 2 / 3  # m / (C m / 2)
RATE = ("server_optimizer=momentum", "server_optimizer.beta=0", f"server_optimizer.lr={FIRST_RATE}")
WORST = """
0.4812689175 -0.7479605136 0.2632169329 1.003060101 0.1134600101 -0.2257240025 0.7344687598 -0.4939660474
-0.2344687598 0.6189660474 0.05486146712 -0.1173614671 0.4695413703 -0.7466247247 0.2713537644 1.005060613
0.1064093058 -0.2105012311 0.7245545232 -0.4901384396 -0.2245545232 0.6151384396 0.05076130348 -0.1132613035
"""
ALMOST_ONLY_THE_WORST = """
0.510785226 -0.7228596948 0.2311860842 0.9932386138 0.1317347163 -0.2341739877 0.7290315623 -0.4632778252
-0.2290315623 0.5882778252 0.08148474953 -0.1439847495 0.5155359054 -0.7062749768 0.2220767546 0.9900207767
0.134957985 -0.2229013511 0.7161882294 -0.4419375861 -0.2161882294 0.5669375861 0.09089502344 -0.1533950234
"""
BEST = """
0.462258167 -0.7767582437 0.2803540528 1.019544781 0.09497655649 -0.2155036549 0.7480985055 -0.5243396164
-0.2480985055 0.6493396164 0.03000746086 -0.09250746086 0.4369693871 -0.7936562804 0.3014507314 1.031409066
0.07735405497 -0.1948696216 0.7482210993 -0.5417280656 -0.2482210993 0.6667280656 0.01096517442 -0.07346517442
"""


def tilted_mean(t: float, model: torch.Tensor) -> float:
    """The mean over clients of exp(t (F_k - max F))."""
    client_losses = losses(model)
    return float((t * (client_losses - client_losses.max())).exp().mean())


@pytest.mark.parametrize(("t", "theirs"), [(1, WORST), (5, ALMOST_ONLY_THE_WORST), (-2, BEST)])
def test_two_rounds_but_for_the_length_of_a_step(tiny: Tiny, tmp_path, t: float, theirs: str):
    ours = models(three_clients(tiny, tmp_path, *RULE, f"aggregator.t={t}", "rounds=2", *RATE))
    first, _ = numbers(theirs)
    means = [tilted_mean(t, model) for model in (torch.tensor(START), first)]
    rate = means[1] / (3 * (means[0] / 4 + means[1] / 2))
    ours[1] = ours[0] + (ours[1] - ours[0]) * rate / FIRST_RATE
    assert rate != pytest.approx(FIRST_RATE, rel=0.01)
    assert_agrees(ours, theirs)
