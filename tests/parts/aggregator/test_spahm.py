"""What SPAHM weighs by: examples, and only for the output bias."""

from typing import Literal

import numpy as np
import pytest
import torch
from worlds import Tiny, uploads_like, world_of

from fedexp.core.errors import ConfigError
from fedexp.maths.matching.networks import Network
from fedexp.parts.aggregator.spahm import SPAHM
from fedexp.simulation import context


@pytest.mark.parametrize(("weighting", "bias"), [("num_samples", 0.25 * 1 + 0.25 * 2 + 0.5 * 6), ("uniform", 3.0)])
def test_the_output_bias_is_the_clients_mean(tiny: Tiny, weighting: Literal["num_samples", "uniform"], bias: float):
    """Three networks of one unit that is the same in all: it is matched, and only their last biases differ."""
    unit = np.array([[2.0, -1.0]]), np.array([[3.0]])
    nets = [Network(unit, (np.array([0.5]), np.array([last]))) for last in (1.0, 2.0, 6.0)]
    uploads = uploads_like(torch.zeros(3, 1), examples=np.array([10, 10, 20]))
    net, (layer,) = SPAHM(weighting=weighting).match(nets, uploads, context.make_context(world_of(tiny()), 1))
    assert net.hidden == (1,)
    assert [seats.tolist() for seats in layer.assigned] == [[0]] * 3
    assert net.biases[1].tolist() == pytest.approx([bias])
    assert net.weights[0][0].tolist() == pytest.approx([2.0, -1.0], rel=1e-3)


def test_one_hidden_layer_and_no_other_number():
    SPAHM().refuse_depth(1)
    for layers in (0, 2):
        with pytest.raises(ConfigError, match=f"of one hidden layer, but model.hidden has {layers}; use aggregator"):
            SPAHM().refuse_depth(layers)
