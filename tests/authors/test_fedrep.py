"""FedRep beside its authors' program.

Of github.com/lgcollins/FedRep at d82e62982e107bb3322541604f059c0ff28bd289 ran main_fedrep.py whole, with LocalUpdate of
models/Update.py, on these examples (as its mnist, whose clients count alike). Set as here: full batches, rate 0.5, its
fixed momentum 0.5, local_ep 3 with local_rep_ep 1, which are two epochs of the head and one of the body. To make it the
same as ours its weight decay was 0. It ran on PyTorch 2.14.

All agrees: the averaged body, and the heads that stay, in both rounds. Three things that are set otherwise: (1) Its
weight decay, fixed at 0.0001, falls on weights alone; local.weight_decay on biases too. (2) Its README asks for PyTorch
1.2 or newer; in old versions, whose zero_grad leaves zeros and not None, the head goes on in the body's epochs by its
momentum (and weight decay), which it does not in newer versions, in the paper and here. (3) In its last round the heads
of all clients train for ten epochs or more before they are measured; evaluation.fine_tune_epochs tunes the whole
network. On femnist and sent140 it weighs clients by their examples, as aggregator.weighting=num_samples does.
"""

import pytest
import torch
from authors.three_clients import (
    BODY,
    CLIENTS,
    HEAD,
    assert_agrees,
    assert_parts_agree,
    first_model,
    gradient,
    three_clients,
)
from worlds import Tiny

pytestmark = pytest.mark.usefixtures("_double")

WORDS = (
    *("local=fedrep", "local.lr=0.5", "local.momentum=0.5", "local.head_epochs=2", "local.epochs=1"),
    *("local.batch_size=full", "aggregator.weighting=uniform", "rounds=2"),
)
FIRST_BODY = """
0.5919312511 -0.216806564 0.2318620469 0.7571132569 -0.4843149661 0.1276651108 0.1290090171 -0.2431542025 0.05234088649
"""
FIRST_HEADS = """
0.9556242352 -0.5339783678 0.08223613922 -0.3859215269 0.5580264718 0.5149881159 0.05529729166 0.225951896 -0.5972242551
0.1628385629 0.29722349 -0.4600620528
0.9501615723 -0.1016431239 0.02667025773 -0.2643967237 0.5461836339 0.3257772727 -0.06076484867 -0.19454051
-0.3524475304 0.1525698228 -0.2962135779 0.1436437551
0.6059379885 -0.420943439 0.3294264913 -0.1536474904 0.3226834966 0.320996262 0.1727095019 0.3482599424 -0.6504227534
-0.4403588672 0.1233715 0.3169873672
"""
SECOND_BODY = """
0.677706294 -0.1958870582 0.2317050583 0.7862680791 -0.4949446051 0.1215181946 0.1280095911 -0.2307724078 0.0507539541
"""
SECOND_HEADS = """
1.133679848 -0.5663561797 -0.05279585487 -0.5130241314 0.6098712194 0.6337331429 0.004344283543 0.2064849603
-0.580937288 0.253525655 0.4274965771 -0.6810222321
1.14528555 0.1876391006 -0.1307080617 -0.2699286811 0.5796948545 0.2934793069 -0.2503568687 -0.517333955 -0.1627712452
0.2790761582 -0.5702031329 0.2911269747
0.5238639442 -0.3771137498 0.3687409996 -0.07474409503 0.1593859928 0.2818589497 0.1758801509 0.467727757 -0.6505999493
-0.7095509009 0.1329715202 0.5765793807
"""
OLD_PYTORCH_HEADS = """
1.015978651 -0.5436839212 0.03277414128 -0.4264072989 0.5747976501 0.5565595746 0.03542864786 0.218886271 -0.5893337159
0.2091094305 0.346916643 -0.5560260735
1.008939688 0.01541560894 -0.03898097486 -0.268505268 0.5595273141 0.3115871934 -0.1154344202 -0.324942923 -0.2726062186
0.1969344469 -0.4173174973 0.2203830504
0.5656828836 -0.3987776299 0.3513517097 -0.1255082809 0.2701030033 0.3054101086 0.1848253973 0.3786746266 -0.6567618184
-0.5653940248 0.1225358179 0.4428582068
"""


@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_two_rounds(tiny: Tiny, tmp_path, engine: str):
    world = three_clients(tiny, tmp_path, *WORDS, f"engine={engine}")
    assert_parts_agree(world, (BODY, HEAD), (FIRST_BODY, FIRST_HEADS), (SECOND_BODY, SECOND_HEADS))


def test_in_its_own_pytorch_the_head_goes_on_by_its_momentum():
    """Two steps of the head, then the half of the second one again, where the gradient is zero."""
    heads = []
    for client in CLIENTS:
        model, velocity = first_model(), torch.zeros(12)
        for _ in range(2):
            velocity = 0.5 * velocity + gradient(model, client)[HEAD]
            model[HEAD] -= 0.5 * velocity
        heads.append(model[HEAD] - 0.5 * 0.5 * velocity)
    assert_agrees(torch.stack(heads), OLD_PYTORCH_HEADS)
