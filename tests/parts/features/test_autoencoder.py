"""Features from an autoencoder: scaling and noise by hand, what is learnt, and who sees what."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import nn
from worlds import world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.random_streams import stream
from fedexp.parts.dataset.contract import Data, Facts, Split
from fedexp.parts.features.autoencoder import Autoencoder, AutoencoderEncoding, Scaling, add_noise, linear_stack
from fedexp.run.run import run
from fedexp.simulation.round import run_round
from fedexp.simulation.setup import compatibility

Tiny = Callable[..., dict[str, Any]]
WORDS = ("features=autoencoder", "scenario.public_fraction=0.5", "features.epochs=2", "features.code=5")
RNG, CPU = partial(stream, 0, "features"), torch.device("cpu")


@pytest.mark.parametrize(
    ("symmetric", "expected"), [(False, [[0.5, 0, 1], [0, 0, 0.25]]), (True, [[0, -1, 1], [-1, -1, -0.5]])]
)
def test_scaling_by_the_range_of_the_public_data(symmetric: bool, expected: list[list[float]]):
    public = torch.tensor([[0.0, 7.0, 10.0], [4.0, 7.0, 14.0]])  # the second number never changes
    scaling = Scaling.of(public, symmetric)
    torch.testing.assert_close(scaling(torch.tensor([[2.0, 9.0, 99.0], [-3.0, 7.0, 11.0]])), torch.tensor(expected))


def test_images_and_windows_are_scaled_as_they_are_stored():
    x = torch.arange(24, dtype=torch.uint8).view(2, 3, 2, 2)
    assert Scaling.of(x, False)(x).tolist() == [[0.0] * 12, [1.0] * 12]
    huge = torch.tensor([[-3e38], [3e38], [0.0]])
    assert Scaling.of(huge, True)(huge).tolist() == [[-1.0], [1.0], [0.0]]


def test_six_linear_layers_and_relu_between_them():
    both = Autoencoder(code=2, hidden=(5, 3), output="tanh").network(9)
    layers = [layer for part in both for layer in part.children()]
    kinds = [type(layer) for layer in layers]
    linear, relu = nn.Linear, nn.ReLU
    assert kinds == [linear, relu, linear, relu, linear, linear, relu, linear, relu, linear, nn.Tanh]
    widths = [layer.out_features for layer in layers if isinstance(layer, nn.Linear)]
    assert widths == [5, 3, 2, 3, 5, 9]


def test_what_is_encoded_is_scaled_noised_and_mapped():
    encoder = linear_stack([2, 1])
    first = encoder[0]
    assert isinstance(first, nn.Linear)
    with torch.no_grad():
        first.weight.copy_(torch.tensor([[1.0, 10.0]]))
        first.bias.fill_(0.5)
    code = AutoencoderEncoding(scaling=Scaling(torch.zeros(2), torch.ones(2), False), encoder=encoder, noise=0.5)
    x = torch.tensor([[0.25, 1.0], [0.0, 0.5]])
    seen = code.split(Split(x, torch.tensor([1, 0])), RNG("train"))
    draw = torch.from_numpy(RNG("train").standard_normal((2, 2), dtype=np.float32))
    expected = (x + 0.5 * draw) @ torch.tensor([[1.0], [10.0]]) + 0.5
    torch.testing.assert_close(seen.x, expected)
    assert seen.y.tolist() == [1, 0]


def test_noise_has_its_deviation():
    drawn = add_noise(torch.ones(200, 500), 0.25, RNG())
    assert float(drawn.mean()) == pytest.approx(1, abs=0.01)
    assert float(drawn.std()) == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize("output", ["sigmoid", "tanh"])
def test_what_lies_on_a_line_is_learnt(output: Literal["sigmoid", "tanh"]):
    """Forty numbers that one hidden number explains: far better than the mean, and noise is taken out."""
    along = torch.from_numpy(RNG("line").random((600, 1), dtype=np.float32))
    x = along * torch.linspace(1, 3, 40) + 5
    part = Autoencoder(code=1, hidden=(32, 16), output=output, noise=0.1, epochs=15, lr=0.003)
    learnt = part.learn(x, RNG, CPU)
    figures = learnt.figures
    assert figures["reconstruction_error"] < 0.1 * figures["error_of_the_mean"]
    assert figures["reconstruction_error"] < 0.01  # the variance of the noise
    code = learnt.split(Split(x, torch.zeros(600)), RNG("train")).x
    assert abs(np.corrcoef(code[:, 0], along[:, 0])[0, 1]) > 0.95


def test_the_same_streams_give_the_same_code():
    x = torch.randn(40, 2, 3)
    data = Data(Split(x, torch.zeros(40)), Split(x[:7], torch.zeros(7)), ("a",), 255.0, (0.3,), (2.0,))
    one, other = (Autoencoder(code=4, epochs=2).learn(x, RNG, CPU).data(data, RNG) for _ in range(2))
    assert torch.equal(one.train.x, other.train.x)
    assert one.train.x.shape == (40, 4)
    assert one.train.x.dtype == torch.float32
    assert not torch.equal(one.train.x[:7], one.test.x)  # each split has its own noise
    assert (one.scale, one.mean, one.std) == (1.0, (0.0,), (1.0,))


def test_without_noise_equal_examples_have_equal_codes():
    x = torch.randn(40, 6)
    learnt = Autoencoder(code=4, epochs=1, noise=0).learn(x, RNG, CPU)
    train, test = (learnt.split(Split(x, torch.zeros(40)), RNG(name)).x for name in ("train", "test"))
    assert torch.equal(train, test)


@pytest.mark.parametrize("shape", [(8,), (6, 16), (1, 8, 8)])
def test_every_shape_becomes_a_table_of_codes(tiny: Tiny, shape: tuple[int, ...]):
    world = world_of(tiny(*WORDS, f"dataset.shape=[{','.join(map(str, shape))}]", "evaluation.validation=true"))
    assert world.public is not None
    assert world.validation is not None
    for examples in (world.train, world.test, world.public, world.validation):
        assert examples.x.shape == (len(examples), 5)
        assert examples.is_normalised
    assert world.layout.shapes[0] == (128, 5)


def test_what_clients_hold_teaches_nothing(tiny: Tiny):
    """Labels that an attack turns, and examples that it marks, change no code but their own."""
    words = (*WORDS, "dataset.shape=[1,8,8]", "scenario.malicious=3")
    plain, marked = world_of(tiny(*words)), world_of(tiny(*words, "attack=backdoor"))
    changed = (plain.train.x != marked.train.x).any(dim=1).nonzero().flatten().tolist()
    held = np.concatenate([plain.partition.shard(int(client)) for client in plain.malicious])
    assert changed
    assert set(changed) <= set(held.tolist())
    assert marked.probes["attack.success_rate"].x.shape[1:] == (5,)


def test_the_run_records_the_reconstruction(tiny: Tiny, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO")
    run(tiny(*WORDS), tmp_path)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["features.reconstruction_error"] > 0
    assert summary["public_examples"] == 60
    assert "features: reconstruction_error 0." in caplog.text


class TestRefusals:
    def test_without_public_data(self, tiny: Tiny):
        with pytest.raises(ConfigError, match="features=autoencoder needs public data of the server"):
            compatibility.refuse(spec.build(tiny("features=autoencoder")))

    def test_networks_for_images_see_codes(self, tiny: Tiny):
        images = ("dataset.shape=[1,8,8]", "model=simple_cnn")
        compatibility.refuse(spec.build(tiny(*images)))
        with pytest.raises(ConfigError, match=r"simple_cnn needs images .* \(5,\)"):
            compatibility.refuse(spec.build(tiny(*images, *WORDS)))

    def test_another_number_of_layers(self, tiny: Tiny):
        with pytest.raises(ConfigError, match=r"features\.hidden must be the widths of the two layers"):
            spec.build(tiny(*WORDS, "features.hidden=[3]"))

    def test_a_single_public_example(self):
        with pytest.raises(ConfigError, match="needs 2 public examples, to learn and to measure, got 1"):
            Autoencoder().learn(torch.zeros(1, 3), RNG, CPU)


def test_the_models_facts_are_the_codes():
    facts = Facts((6, 128), 12, 100, 21)
    assert Autoencoder(code=9).facts(facts) == Facts((9,), 12, 100, 21)


def test_an_audit_looks_at_gradients_of_the_network_that_sees_codes(tiny: Tiny):
    privacy = ("privacy=dp_sgd", "privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3")
    world = world_of(
        tiny(*WORDS, *privacy, "local.batch_size=4", "audit=canaries", "audit.count=31", "audit.guesses=0.4")
    )
    rows = world.gradients.per_example(world.first.flat, np.arange(3))
    assert rows.shape == (3, world.layout.parameters)
    assert run_round(world.exp, world, world.initial_state())[0].memory["audit"]["score"].any()


def test_what_is_known_of_groups_is_known_of_codes_too(tiny: Tiny):
    grouped = ("dataset.subjects=4", "dataset.groups=2", "federation=subject", "federation.server_persons=1")
    coded, plain = (world_of(tiny(*grouped, *words)) for words in (("features=autoencoder", "features.epochs=1"), ()))
    assert coded.groups is not None
    assert plain.groups is not None
    assert coded.groups.tolist() == plain.groups.tolist()
