from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.parts.attack.backdoor import Backdoor, add_trigger
from fedexp.parts.attack.forging import AttackerKnowledge
from fedexp.parts.dataset.contract import Data, Split
from fedexp.run.run import run
from fedexp.simulation.setup import compatibility

TRAIN = Split(torch.zeros(40, 1, 4, 4, dtype=torch.uint8), torch.arange(40) % 4)
TRAIN.x[:, 0, 0, 0] = 16  # white


def test_the_trigger_by_hand():
    image = add_trigger(torch.zeros(1, 1, 4, 4, dtype=torch.uint8), 2, torch.tensor(16))[0, 0]
    assert image.tolist() == [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 16, 16], [0, 0, 16, 16]]


def test_a_share_of_the_owned_images_is_marked_and_relabelled():
    owned = np.arange(20)
    poisoned = Backdoor(target=3, fraction=0.5, size=1).poison(TRAIN, owned, 4, np.random.default_rng(0))
    marked = poisoned.x[:, 0, 3, 3] == 16
    assert 4 < int(marked.sum()) < 16
    assert not marked[20:].any()
    assert (poisoned.y[marked] == 3).all()
    assert torch.equal(poisoned.y[~marked], TRAIN.y[~marked])
    assert not TRAIN.x[:, 0, 3, 3].any()


def test_success_is_measured_on_other_classes_with_the_trigger():
    attack, names = Backdoor(target=3, size=1), ("a", "b", "c", "d")
    darker = replace(TRAIN, x=TRAIN.x // 2)
    probe = attack.probes(Data(TRAIN, darker, names))["attack.success_rate"]
    assert len(probe.y) == 30
    assert (probe.y == 3).all()
    assert (probe.x[:, 0, 3, 3] == 16).all(), "the trigger of the training"
    probe = attack.probes(Data(TRAIN, replace(TRAIN, x=TRAIN.x / 32), names))["attack.success_rate"]
    assert (probe.x[:, 0, 3, 3] == 0.5).all(), "the test images are stored otherwise"


def test_a_run_learns_the_backdoor_and_still_works(tiny, tmp_path):
    words = ("dataset=digits", "model=mlp", "rounds=6", "local.epochs=5", "evaluation.every=2", "scenario.malicious=2")
    run(tiny(*words, "attack=backdoor"), tmp_path / "attacked")
    run(tiny(*words, "attack=backdoor", "scenario.malicious=0"), tmp_path / "clean")
    attacked, clean = (pd.read_csv(tmp_path / name / "metrics.csv") for name in ("attacked", "clean"))
    assert attacked["attack.success_rate"].isna().tolist() == [True, False] * 3
    assert attacked["attack.success_rate"].iloc[-1] > 0.8 > 0.3 > clean["attack.success_rate"].iloc[-1]
    assert attacked["test_accuracy"].iloc[-1] > 0.85


def test_refusals(tiny):
    with pytest.raises(ConfigError, match="attack=backdoor needs images"):
        compatibility.refuse(spec.build(tiny("attack=backdoor")))
    with pytest.raises(ConfigError, match=r"attack\.size must be below the 8 pixels"):
        compatibility.refuse(spec.build(tiny("attack=backdoor", "attack.size=8", "dataset.shape=[1,8,8]")))


def test_what_is_sent_is_scaled(scene: AttackerKnowledge):
    assert Backdoor(scale=10.0).forge(scene)[0].tolist() == [[10, 10], [30, 50]]
