"""FedExP beside its authors' program.

Of github.com/Divyansh03/FedExP at 34b05a269e2cff24c54c0b159bde80fa915bbeff ran main.py with algorithm fedexp, and
get_grad of util_general.py, in float64: all three clients, cp 4 local steps, bs 2, eta_l 0.1, epsilon_fedexp 0.0001.
There cp is 20, bs 50 and, for EMNIST, epsilon_fedexp 0.1. decay and weight_decay, 0.998 and 0.0001 there, were 1 and 0;
loaders did not shuffle. It clips gradients at 10, longer than any of these.

The settings with which ours is the same: weighting by examples, and `aggregator.eps` = C epsilon. Beside these it
differs from ours in what it measures, the mean of the last two models, and in that it lets epsilon shrink with the
square of the rate where that decays.
"""

import pytest
import torch
from authors.servers import assert_agrees, three_clients
from worlds import Tiny, rounds_with_rows

pytestmark = pytest.mark.usefixtures("_double")

RULE = ("algorithm=fedexp", "aggregator.weighting=num_samples", "aggregator.eps=0.0003", "local.lr=0.1")
STEPS = ("local.epochs=null", "local.steps=4", "local.batch_size=2", "local.order=file")
THREE_ROUNDS = """
0.3880281138 -0.7669760016 0.344232184 1.024419783 0.05708161587 -0.1383581394 0.6932097975 -0.5104325522
-0.1932097975 0.6354325522 -0.001604135142 -0.06089586486 0.2491173013 -0.7821711244 0.4661030564 1.04728552
-0.004045721005 -0.02326956255 0.6230122455 -0.530082537 -0.1230122455 0.655082537 -0.03063689856 -0.03186310144
0.08386042456 -0.8044131589 0.6213228591 1.090317284 -0.05750053949 0.09236828611 0.5419697911 -0.5711825786
-0.04196979114 0.6961825786 0.0006712067196 -0.06317120672
"""
RATES = [2.316647044240491, 3.681705959065379, 6.254146567585399]


def test_three_rounds(tiny: Tiny, tmp_path):
    world = three_clients(tiny, tmp_path, *RULE, *STEPS, "rounds=3")
    states = [state for state, _, _ in rounds_with_rows(world)]
    assert_agrees(torch.stack([state.models[0].flat for state in states]), THREE_ROUNDS)
    assert [state.memory["aggregator"]["columns"]["rate"] for state in states] == pytest.approx(RATES, rel=1e-9)
