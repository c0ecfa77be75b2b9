import numpy as np
import pytest
import torch

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.parts.attack.label_flip import LabelFlip
from fedexp.parts.dataset.contract import Split
from fedexp.simulation.setup import compatibility

TRAIN = Split(torch.zeros(6, 2), torch.tensor([0, 1, 2, 3, 4, 0]))


def flipped(attack: LabelFlip, owned: list[int]) -> list[int]:
    return attack.poison(TRAIN, np.array(owned, dtype=np.int64), 5, np.random.default_rng(0)).y.tolist()


def test_by_hand():
    assert flipped(LabelFlip(), [0, 1, 2]) == [4, 3, 2, 3, 4, 0]
    assert flipped(LabelFlip(source=0, target=3), [0, 1, 2]) == [3, 1, 2, 3, 4, 0]
    assert flipped(LabelFlip(), []) == TRAIN.y.tolist()
    assert TRAIN.y.tolist() == [0, 1, 2, 3, 4, 0], "the data that others may hold stay"


def test_refusals(tiny):
    with pytest.raises(ConfigError, match=r"attack\.source and target: both must be given, .* got source alone"):
        spec.build(tiny("attack=label_flip", "attack.source=1"))
    with pytest.raises(ConfigError, match=r"attack\.target must be a class below 10, got 10"):
        compatibility.refuse(spec.build(tiny("attack=label_flip", "attack.source=1", "attack.target=10")))
