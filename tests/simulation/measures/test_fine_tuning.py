"""Models that clients tune before they are measured."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from worlds import world_of

from fedexp.simulation.measures.fine_tuning import tune_rows

Tiny = Callable[..., dict[str, Any]]


@pytest.mark.parametrize("rule", ["sgd", "fedlc", "fedrs"])
def test_a_client_of_pooled_data_tunes_by_what_it_holds_itself(tiny: Tiny, rule: str):
    words = (
        f"local={rule}",
        "federation=dirichlet",
        "evaluation.personal_fraction=0.3",
        "evaluation.fine_tune_epochs=2",
    )
    sites, tuned = np.arange(6), []
    for training in ("null", "central"):
        world = world_of(tiny(*words, f"scenario.training={training}"))
        tuned.append(tune_rows(world, world.first.flat.expand(6, -1), sites, 3))
    assert torch.equal(*tuned)
    assert not torch.equal(tuned[0][0], tuned[0][1])
