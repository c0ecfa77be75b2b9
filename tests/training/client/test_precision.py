from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from worlds import Tiny, first_round, world_of

from fedexp.core.errors import ConfigError
from fedexp.run.run import run
from fedexp.run.state.checkpoint import changed_keys
from fedexp.training.client.precision import in_bf16
from fedexp.training.layers.sequential import layer_chain
from fedexp.training.loop.trainer import LoopTrainer


def test_layers_compute_in_bfloat16_and_the_answer_is_float32():
    network, x = nn.Linear(64, 3), torch.rand(5, 64)
    exact = network(x)
    lowered = in_bf16(network)(x)
    assert lowered.dtype == torch.float32
    assert torch.equal(lowered, lowered.bfloat16().float())
    assert not torch.equal(lowered, exact)
    assert torch.allclose(lowered, exact, atol=0.02)


@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_a_run_in_bfloat16_is_near_one_in_float32(tiny: Tiny, engine: str, tmp_path: Path):
    losses = {}
    for precision in ("float32", "bf16"):
        run(tiny(f"engine={engine}", f"engine.precision={precision}"), tmp_path / precision)
        losses[precision] = pd.read_csv(tmp_path / precision / "metrics.csv")["test_loss"]
    assert not losses["bf16"].equals(losses["float32"])
    assert (losses["bf16"] - losses["float32"]).abs().max() < 0.05


@pytest.mark.parametrize("words", [("model=mlp",), ("model=keras_cnn", "dataset.shape=[1,8,8]")])
def test_bfloat16_takes_the_written_out_passes_and_trains_as_autocast_to_the_bit(
    tiny: Tiny, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
):
    ends = []
    for written in (True, False):
        if not written:
            monkeypatch.setattr("fedexp.training.loop.trainer.manual_pass", lambda *_: None)
        world = world_of(tiny("engine=loop", "engine.precision=bf16", "local.batch_size=6", *words))
        assert isinstance(world.trainer, LoopTrainer)
        assert (world.trainer.manual_pass is not None) == written
        ends.append(world.trainer.run(first_round(world), np.arange(3)))
    assert torch.equal(*ends)
    # What does not have the layers round must not take them apart.
    assert layer_chain(world.trainer_spec.build_network()) is None


def test_a_network_that_does_more_than_round_is_no_chain():
    own = nn.Sequential(nn.Linear(2, 2))
    own.forward = lambda input: 2 * input
    inner = nn.Sequential(in_bf16(nn.Linear(2, 2)))
    for network in (in_bf16(own), inner, in_bf16(inner)):
        assert layer_chain(network, allow_bf16=True) is None
    assert layer_chain(in_bf16(nn.Sequential(nn.Linear(2, 2))), allow_bf16=True) is not None


def test_tf32_needs_a_gpu(tiny: Tiny, tmp_path: Path):
    with pytest.raises(ConfigError, match=r"engine.precision=tf32 needs a GPU, .*; use engine.precision=float32"):
        run(tiny("engine.precision=tf32", "engine.device=cpu"), tmp_path)


def test_gradients_of_single_examples_are_not_rounded(tiny: Tiny, tmp_path: Path):
    words = ("privacy=dp_sgd", "privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3")
    with pytest.raises(ConfigError, match=r"bf16 would round .* privacy=dp_sgd clips; use engine.precision=float32"):
        run(tiny(*words, "engine.precision=bf16"), tmp_path)


def test_every_network_of_a_run_computes_alike(tiny: Tiny):
    world = world_of(tiny("engine.precision=bf16"))
    x = world.test.inputs(slice(0, 9))
    told, other = world.scorer.logits(world.first, x), world.trainer_spec.build_network().eval()
    other.load_state_dict(world.layout.views(world.first.flat))
    assert torch.equal(told, other(x))
    other.forward = vars(other)["forward"].__wrapped__
    assert not torch.equal(told, other(x))


def test_a_run_does_not_go_on_with_another_precision(tiny: Tiny):
    assert changed_keys(tiny(), tiny("engine=stacked", "engine.workers=2")) == ""
    assert "engine.precision" in changed_keys(tiny(), tiny("engine.precision=bf16"))


def test_weights_are_rounded_anew_where_somebody_never_left_autocast():
    linear = nn.Linear(2, 1, bias=False)
    network = in_bf16(linear)
    x, outer = torch.ones(1, 2), torch.autocast("cpu")
    outer.__enter__()
    try:
        answers = []
        for value in (1.0, 3.0):
            linear.weight.data.fill_(value)
            answers.append(network(x).item())
    finally:
        outer.__exit__(None, None, None)
    assert answers == [2.0, 6.0]
