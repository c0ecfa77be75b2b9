"""Any network by the name of what makes it: what that is given, what goes wrong, and that both engines train it."""

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import own_networks
import pytest
import torch
from command_line import complaint
from networks import MNIST
from torch import nn
from worlds import Tiny, first_round, world_of

from fedexp import cli
from fedexp.core.errors import ConfigError
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.model.torch import Torch, factory_arguments

FACTS = Facts((4, 5), 3, 100, vocabulary=9)


def named(name: str, **arguments: Any) -> Torch:
    return Torch(factory=f"own_networks:{name}", arguments=arguments)


def test_a_function_gets_what_its_parameters_name():
    def everything(vocabulary, *, facts, classes=2, shape=(), other=1):
        return vocabulary, facts, classes, shape, other

    def nothing(*others: int, **more: int) -> None: ...

    assert everything(**factory_arguments(everything, FACTS, {})) == (9, FACTS, 3, (4, 5), 1)
    assert everything(**factory_arguments(everything, FACTS, {"classes": 8, "other": 2})) == (9, FACTS, 8, (4, 5), 2)
    assert factory_arguments(nothing, FACTS, {"width": 3}) == {"width": 3}
    assert factory_arguments(dict, FACTS, {"width": 3}) == {"width": 3}, "its parameters cannot be known"


def test_a_function_makes_the_network():
    network = named("small").network(Facts(MNIST, 10, 1))
    assert network(torch.zeros(2, *MNIST)).shape == (2, 10)


def test_a_class_makes_it_with_arguments():
    network = named("Deep", depth=2, width=7).network(Facts((4,), 3, 1))
    assert isinstance(network, own_networks.Deep)
    assert network.middle[1].weight.shape == (7, 7)


def test_classes_of_pytorch_will_do():
    model = Torch(factory="torch.nn:Linear", arguments={"in_features": 4, "out_features": 3})
    assert isinstance(model.network(Facts((4,), 3, 1)), nn.Linear)


@pytest.mark.parametrize(
    "factory", ["own_networks.small", "small", ":small", "own_networks:", "a b:c", "x:y.z", "x:y:z"]
)
def test_a_name_is_module_and_name(factory: str):
    with pytest.raises(ConfigError, match=r"^Torch\.factory must be a function or class as module:name, got '"):
        Torch(factory=factory)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (Torch(factory="nowhere.nets:make"), "model.factory must name a function or class, but there is no module now"),
        (named("smal"), "model.factory must name a function or class, but own_networks:smal does not exist"),
        (named("NUMBER"), "model.factory must name a function or class, but own_networks:NUMBER is none"),
        (named("small", widht=3), "model.arguments must be parameters of model.factory, got widht; "),
        (named("Deep"), "model.arguments must hold depth, which model.factory asks for; beside the arguments it is gi"),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_made(model: Torch, said: str):
    with pytest.raises(ConfigError, match=f"^{re.escape(said)}") as told:
        model.refuse(FACTS)
    assert "\n" not in str(told.value)


def test_a_near_miss_is_suggested():
    with pytest.raises(ConfigError, match="did you mean width"):
        named("Deep", widht=3).refuse(FACTS)


def test_what_it_raises_is_one_line_with_its_place():
    with pytest.raises(ConfigError) as told:
        named("failing").network(FACTS)
    said = r"model\.factory=own_networks:failing raised ZeroDivisionError: for 3 classes \(own_networks\.py, line \d+\)"
    assert re.fullmatch(said, str(told.value))


@pytest.mark.parametrize("error", [SystemExit(0), KeyboardInterrupt(), GeneratorExit()], ids=repr)
def test_what_would_end_the_process_is_one_line_and_no_folder_is_left(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def ending() -> None:
        raise error

    monkeypatch.setattr(own_networks, "small", ending)
    words = ("model=torch", "model.factory=own_networks:small", "dataset=synthetic", "dataset.train_size=60")
    assert cli.main(["run", *words, f"hydra.run.dir={tmp_path / 'run'}"]) == 2
    assert f"model.factory=own_networks:small raised {type(error).__name__}" in complaint(capsys)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("factory", ["own_networks.py:small", "./own_networks.py:small"])
def test_a_file_is_no_module(factory: str):
    with pytest.raises(ConfigError, match=r"; write own_networks:small$"):
        Torch(factory=factory).refuse(FACTS)


def test_what_is_compiled_is_given_back_as_it_was(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("TORCHDYNAMO_DISABLE", raising=False)
    Torch(factory="own_networks:small").refuse(FACTS)
    assert os.environ["TORCHDYNAMO_DISABLE"] == "1", "which torch.compile looks at"


@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_a_function_that_fails_in_the_backward_pass_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], engine: str
):
    words = ("model=torch", "model.factory=own_networks:Hooked", "dataset=synthetic", "dataset.train_size=60")
    small = ("dataset.shape=[4]", "dataset.test_size=20", "engine.workers=1", "pictures=false", f"engine={engine}")
    assert cli.main(["run", *words, *small, f"hydra.run.dir={tmp_path / 'run'}"]) in (1, 2)
    assert re.search(r"own_networks\.torn \(own_networks\.py, line \d+\) raised KeyError: ", complaint(capsys))


def test_it_must_give_a_module(tiny: Tiny):
    with pytest.raises(ConfigError, match=r"^model=torch: network must return a torch\.nn\.Module, got str"):
        world_of(tiny("model=torch", "model.factory=own_networks:text"))


def test_its_own_first_values_stay_and_follow_from_the_seed(tiny: Tiny):
    words = ("model=torch", "model.factory=own_networks:Deep", "model.arguments={depth: 1}")
    one, two, other = (world_of(tiny(*words, f"seed={seed}")) for seed in (0, 0, 1))
    assert torch.equal(one.first.flat, two.first.flat)
    assert not torch.equal(one.first.flat, other.first.flat)
    assert not one.first.layout.views(one.first.flat)["last.bias"].any(), "zero, as it says itself"


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("more", [(), ("privacy=dp_sgd", "privacy.clip=0.1", "privacy.noise_multiplier=0")])
def test_layers_that_overwrite_their_inputs_train_alike_in_both_engines(tiny: Tiny, more: tuple[str, ...]):
    words = ("model=torch", "model.factory=own_networks:Deep", "model.arguments={depth: 2}", *more)
    privacy = ("privacy.delta=1e-3", "local.batch_size=4") if more else ()
    loop, stacked = (world_of(tiny(*words, *privacy, f"engine={engine}")) for engine in ("loop", "stacked"))
    task, rows = first_round(loop), np.arange(3)
    torch.testing.assert_close(stacked.trainer.run(task, rows), loop.trainer.run(task, rows), atol=1e-9, rtol=0)


def test_a_run_goes_on_and_is_verified_by_who_ran_it_and_by_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("FEDEXP_CACHE", str(tmp_path / "cache"))
    words = ("model=torch", "model.factory=own_networks:Deep", "model.arguments={depth: 1}", "dataset=synthetic")
    small = ("dataset.train_size=60", "dataset.test_size=20", "engine.workers=1", "pictures=false", "rounds=2")
    assert cli.main(["run", *words, *small, f"hydra.run.dir={tmp_path / 'run'}"]) == 0
    assert cli.main(["verify", str(tmp_path / "run")]) == 0
    (tmp_path / "run" / "summary.json").unlink()
    assert cli.main(["resume", str(tmp_path / "run")]) == 0
    (tmp_path / "cache" / "own_parts.json").unlink()
    capsys.readouterr()
    for command in ("resume", "verify"):
        assert cli.main([command, str(tmp_path / "run")]) == 2
        assert "names own_networks:Deep, which was never run here; " in complaint(capsys)
    assert cli.main(["verify", str(tmp_path / "run"), "--trust-modules", "own_networks"]) == 0


def test_a_broken_signature_is_as_good_as_none():
    def make() -> None: ...

    make.__signature__ = 3
    assert factory_arguments(make, FACTS, {"width": 3}) == {"width": 3}


def test_arguments_have_names():
    with pytest.raises(ConfigError, match=r"arguments must have the names of parameters as keys, got 3; put a name"):
        Torch(factory="own_networks:small", arguments={3: 4}).check()
