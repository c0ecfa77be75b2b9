"""FedAMP's server beside PFLlib, which is by others; no program of its authors is public, as far as could be seen.

What is called FedAMP in public repositories is by third parties, and no index of programs names one of theirs. Of
github.com/TsingZ0/PFLlib at d832e76f6a23b833038949ec1e4fdefe63a4d350 ran FedAMP.send_models of serveramp.py and
clientAMP.set_parameters and train of clientamp.py, in float64, on three clients that have trained once: alphaK 0.5,
sigma 2, lamda 3, rate 0.5, two epochs of full batches.

What its server makes of the models, u_i, agrees. Its clients differ from ours in two things. (1) They go on from their
own w_i, where ours start at u_i. (2) The pull towards u_i is computed from the parameters' data, of which nothing
reaches the gradient (and its norm is not squared): so each client trains alone, whatever alphaK, sigma and lamda are.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from authors.three_clients import CLIENTS, assert_agrees, first_model, gradient, network, three_clients
from worlds import Tiny, first_round

from fedexp.core.client_rows import ClientRows
from fedexp.core.values import Layout, Weights
from fedexp.parts.aggregator.fedamp import FedAMP

pytestmark = pytest.mark.usefixtures("_double")

STARTS = """
0.6703794369 -0.31329804 0.07285223144 0.7614703424 -0.4056777391 0.2085048172 0.119128759 -0.2748280689 0.2046238514
0.8872093243 -0.4748531278 0.1292073089 -0.3274794726 0.5268840757 0.4525264595 0.06527014826 0.1979690522 -0.5817337685
0.082751227 0.1934936992 -0.2762449262
0.7309510387 -0.07284590929 0.04094548552 0.5787423583 -0.1894025098 0.3110352584 0.2574152551 -0.3749442242
-0.062601202 0.8890192893 -0.2388677769 0.09496311457 -0.2657946435 0.5234322859 0.3519105861 0.001775354124
-0.03456450895 -0.4468737007 0.08273655565 -0.1387726924 0.05603613677
0.4831472776 -0.1798750785 0.3284380066 0.6762952428 -0.5013111975 0.01653241351 -0.008235816822 -0.06901083318
-0.0978641723 0.6817092715 -0.4174849109 0.2752474017 -0.1988369386 0.3933333824 0.3469053514 0.1421276671 0.2741515285
-0.6221527531 -0.2777900822 0.108027611 0.1697624712
"""
TRAINED = """
0.8411272107 -0.4777753365 -0.1386349769 0.839033512 -0.4446066442 0.2768795363 0.1006304652 -0.3125705252 0.3954836391
1.072061341 -0.5900505332 0.04738983634 -0.4874272266 0.6086831885 0.5859386916 0.04036588522 0.2313673446 -0.633328528
0.2190882003 0.3349698487 -0.554058049
0.9491615406 0.1130311736 0.002386692034 0.5133767049 0.05511543016 0.4653999474 0.3219403416 -0.5288643507
-0.1993516791 1.130424552 -0.0990472132 0.1231987766 -0.2725769866 0.6047595917 0.3500828471 -0.2328475654 -0.2557123785
-0.4732816238 0.1920191496 -0.4083344825 0.2163153329
0.3986614397 -0.1227060782 0.4524207764 0.6737995391 -0.5277728518 -0.2420188785 -0.1424581148 0.1137748647 -0.235757225
0.6121668033 -0.4590383874 0.3720597048 -0.1471874333 0.250042818 0.3325560296 0.16002063 0.4589955694 -0.7046157344
-0.538619619 0.1382533803 0.4003662387
"""


def trained_models() -> torch.Tensor:
    """The clients' models after a step of length 1 on their own examples, `[3, 21]`."""
    return torch.stack([first_model() - gradient(first_model(), client) for client in CLIENTS])


def test_starts():
    memory = ClientRows(torch.arange(3), trained_models()).save()
    weights = Weights(first_model(), Layout.of(network()))
    assert_agrees(FedAMP(alpha=0.5, sigma=2.0).dispatch(weights, np.arange(3), memory), STARTS)


def test_its_clients_train_alone(tiny: Tiny, tmp_path: Path):
    world = three_clients(tiny, tmp_path, "local.lr=0.5", "local.epochs=2", "local.batch_size=9")
    task = replace(first_round(world), start=trained_models())
    assert_agrees(world.trainer.run(task, np.arange(3))[:, :21], TRAINED)
