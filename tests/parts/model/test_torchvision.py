"""Classifiers of torchvision: what is changed in them, what is kept, weights from a file, what cannot be."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from networks import CIFAR, MNIST, parameters
from torch import nn
from torchvision import models
from worlds import Tiny, first_round, world_of

from fedexp.core.errors import ConfigError
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.layers import BatchNorm
from fedexp.parts.model.torchvision import TorchvisionNet

FACTS = Facts(CIFAR, 10, 100)
SMALL = "squeezenet1_1"  # without norms
WITH_NORMS = "shufflenet_v2_x0_5"


def norms(network: nn.Module) -> list[Any]:
    return [layer for layer in network.modules() if isinstance(layer, nn.BatchNorm2d | nn.GroupNorm)]


def test_without_changes_it_is_torchvisions_network():
    ours, plain = TorchvisionNet(name=WITH_NORMS).network(FACTS), models.get_model(WITH_NORMS, num_classes=10)
    ours.load_state_dict(plain.state_dict(), strict=False)
    x = torch.randn(3, *CIFAR)
    assert torch.equal(ours.eval()(x), plain.eval()(x))
    assert all(type(layer) is BatchNorm for layer in norms(ours))
    assert [layer.eps for layer in norms(ours)] == [layer.eps for layer in norms(plain)]


def test_momentum_and_epsilon_of_its_norms_stay():
    found = norms(TorchvisionNet(name="mobilenet_v3_small").network(FACTS))
    assert {(layer.eps, layer.momentum) for layer in found} == {(0.001, 0.01)}


def test_groups_divide_the_channels():
    found = norms(TorchvisionNet(name=WITH_NORMS, norm="group").network(FACTS))
    assert all(type(layer) is nn.GroupNorm for layer in found)
    assert {(layer.num_channels, layer.num_groups) for layer in found} == {(24, 8), (48, 16), (96, 32), (1024, 32)} | {
        (192 // 2, 32)
    }


@pytest.mark.parametrize("name", ["resnet18", "densenet121"])
def test_a_small_stem_leaves_images_their_size(name: str):
    network = TorchvisionNet(name=name, stem="small").network(FACTS)
    first = next(layer for layer in network.modules() if isinstance(layer, nn.Conv2d))
    assert (first.kernel_size, first.stride, first.padding) == ((3, 3), (1, 1), (1, 1))
    seen: list[torch.Tensor] = []
    stage = network.get_submodule({"resnet18": "layer1", "densenet121": "features.denseblock1"}[name])
    stage.register_forward_hook(lambda layer, given, out: seen.append(given[0]))
    network.eval()(torch.randn(1, *CIFAR))
    assert seen[0].shape[2:] == (32, 32)


def test_sizes_by_classes_channels_and_stem():
    # an answer a class fewer than ImageNet's 1,000 saves 513; a 3x3 stem has 9 entries a filter where 7x7 has 49
    assert parameters(TorchvisionNet(), CIFAR, 10) == 11_689_512 - 990 * 513 == 11_181_642
    assert parameters(TorchvisionNet(stem="small"), CIFAR, 10) == 11_181_642 - 3 * 64 * 40 == 11_173_962
    assert parameters(TorchvisionNet(), MNIST, 10) == 11_181_642 - 2 * 64 * 49


@pytest.mark.parametrize(
    ("model", "shape", "said"),
    [
        (
            TorchvisionNet(name="resnet19"),
            CIFAR,
            r"model\.name must be a classifier of torchvision, got resnet19; .*18",
        ),
        (
            TorchvisionNet(name="fcn_resnet50"),
            CIFAR,
            r"model\.name must be a classifier of torchvision, got fcn_resnet50",
        ),
        (
            TorchvisionNet(name="alexnet"),
            CIFAR,
            r"model=torchvision needs images that alexnet can take, but those of sha",
        ),
        (
            TorchvisionNet(name="vit_b_32"),
            CIFAR,
            r"model=torchvision needs images that vit_b_32 can take, .*224 but got",
        ),
        (
            TorchvisionNet(name=SMALL, stem="small"),
            CIFAR,
            r"model\.stem must be image for model\.name=squeezenet1_1, got",
        ),
        (TorchvisionNet(), (561,), r"model=torchvision needs images \(channels, height, width\) .*; use model=mlp"),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_computed(model: TorchvisionNet, shape: tuple[int, ...], said: str):
    with pytest.raises(ConfigError, match=f"^{said}") as told:
        model.refuse(Facts(shape, 10, 100))
    assert "\n" not in str(told.value)


def test_groups_have_nothing_that_a_client_could_keep():
    with pytest.raises(ConfigError, match=r"TorchvisionNet\.buffers must be average with norm=group, .*, got local; "):
        TorchvisionNet(norm="group", buffers="local")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "weights.pt"
    torch.save(models.get_model(WITH_NORMS, num_classes=10).state_dict(), path)
    return path


def test_weights_come_from_a_file(saved: Path):
    model, there = TorchvisionNet(name=WITH_NORMS, weights=saved), torch.load(saved)
    model.refuse(FACTS)
    for name, entry in model.network(FACTS).state_dict().items():
        assert torch.equal(entry, there[name]), name


def test_with_another_number_of_classes_all_but_the_last_layer_does(saved: Path):
    model, there = TorchvisionNet(name=WITH_NORMS, weights=saved), torch.load(saved)
    facts = Facts(CIFAR, 3, 100)
    model.refuse(facts)
    network = model.network(facts)
    assert network(torch.randn(2, *CIFAR)).shape == (2, 3)
    assert torch.equal(network.get_parameter("conv1.0.weight"), there["conv1.0.weight"])


def broken(there: dict[str, Any], name: str) -> Any:
    key = "conv1.0.weight"
    return {
        "less": {other: entry for other, entry in there.items() if other != key},
        "more": {**there, "extra": torch.zeros(2)},
        "shape": {**there, key: torch.zeros(24, 1, 3, 3)},
        "list": [1, 2],
        "numbers": {"a": 3},
        "sparse": {**there, key: there[key].to_sparse()},
        "meta": {**there, key: there[key].to("meta")},
        "whole": {**there, key: there[key].to(torch.int8)},
        "complex": {**there, key: there[key].to(torch.complex64)},
        "infinite": {**there, "conv1.1.running_var": there["conv1.1.running_var"] / 0},
        "beyond": {**there, key: torch.full((24, 3, 3, 3), 1e300, dtype=torch.float64)},
    }[name]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "less",
            r"must fit the network: it has nothing for conv1\.0\.weight, which has \[24, 3, 3, 3\] in the network",
        ),
        (
            "more",
            r"must fit the network: it has \[2\] for extra, which has nothing in the network; give the weights of",
        ),
        ("shape", r"must fit the network: it has \[24, 1, 3, 3\] for conv1\.0\.weight, which has \[24, 3, 3, 3\] in"),
        ("list", r"must hold a dict of tensors by name; save network\.state_dict\(\)"),
        ("numbers", r"must hold a dict of tensors by name; save network\.state_dict\(\)"),
        (
            "sparse",
            r"must hold dense tensors with their values, but conv1\.0\.weight is a sparse, quantized",
        ),
        (
            "meta",
            r"must hold dense tensors with their values, but conv1\.0\.weight is a sparse, quantized",
        ),
        ("whole", r"must hold torch\.float32 for conv1\.0\.weight, got torch\.int8; save the state_dict of network\."),
        ("complex", r"must hold torch\.float32 for conv1\.0\.weight, got torch\.complex64; save the state_dict of"),
        ("infinite", r"must hold finite numbers, but 24 of 24 of conv1\.1\.running_var are not; give weights"),
        ("beyond", r"must hold finite numbers, but 648 of 648 of conv1\.0\.weight are not; give weights"),
    ],
)
def test_weights_that_do_not_fit_are_told_by_name(saved: Path, name: str, said: str):
    torch.save(broken(torch.load(saved), name), saved)
    with pytest.raises(ConfigError, match=f"^model\\.weights={saved} {said}"):
        TorchvisionNet(name=WITH_NORMS, weights=saved).refuse(FACTS)


class Evil:
    """Would make a file where it is unpickled."""

    def __reduce__(self):
        return Path.touch, (Path("unpickled"),)


def test_weights_that_are_not_there(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"^model\.weights must be a file, but there is none at "):
        TorchvisionNet(name=WITH_NORMS, weights=tmp_path / "w.pt").refuse(FACTS)


def test_weights_that_unpack_to_more_than_the_file_has_are_not_unpacked(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "w.pt", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("archive/data/0", bytes(100_000))
    with pytest.raises(ConfigError, match=r"cannot be read: ValueError: it holds more than it has bytes; give a file"):
        TorchvisionNet(name=WITH_NORMS, weights=tmp_path / "w.pt").refuse(FACTS)


@pytest.mark.parametrize("content", [b"no weights", Evil()])
def test_a_file_without_weights_is_one_line_and_nothing_in_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: Any
):
    monkeypatch.chdir(tmp_path)
    if isinstance(content, bytes):
        Path("w.pt").write_bytes(content)
    else:
        torch.save({"a": content}, "w.pt")
    with pytest.raises(ConfigError, match=r"^model\.weights=w\.pt cannot be read: ") as told:
        TorchvisionNet(name=WITH_NORMS, weights=Path("w.pt")).refuse(FACTS)
    assert "\n" not in str(told.value)
    assert "weights_only" not in str(told.value)  # of which PyTorch says that it had better be False
    assert not Path("unpickled").exists()


@pytest.mark.usefixtures("_double")
def test_batch_norm_trains_alike_in_both_engines_even_on_one_example(tiny: Tiny):
    """9 examples a client in batches of 8: the last one has one, which is one value a channel in the last layer."""
    sizes = ("dataset.shape=[3,32,32]", "dataset.train_size=18", "dataset.test_size=10", "scenario.clients=2")
    words = ("model=torchvision", f"model.name={WITH_NORMS}", *sizes, "local.batch_size=8", "scenario.local_lr=0.001")
    loop, stacked = (world_of(tiny(*words, "rounds=1", f"engine={engine}")) for engine in ("loop", "stacked"))
    task, rows = first_round(loop), np.arange(2)
    alone = loop.trainer.run(task, rows)
    torch.testing.assert_close(stacked.trainer.run(task, rows), alone, atol=1e-8, rtol=0)


def test_the_first_values_follow_from_the_seed(tiny: Tiny):
    words = ("model=torchvision", f"model.name={WITH_NORMS}", "dataset.shape=[1,16,16]", "dataset.train_size=24")
    one, two, other = (world_of(tiny(*words, f"seed={seed}")).first.flat for seed in (0, 0, 1))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)
