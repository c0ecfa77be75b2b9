"""Whatever a network raises where it is read, moved or tried is one line, and so is an output that is no tensor."""

import re
from collections.abc import Callable
from typing import Any

import own_models
import pytest
import torch
from torch import nn
from worlds import Tiny, world_of

from fedexp.core.errors import ConfigError
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.network_errors import readable_network

Make = Callable[[Any], Any]


class Mine(torch.Tensor):
    """Of a kind of its own."""


class Net(nn.Linear):
    """A linear layer with an own method, or an own function of its output."""

    def __init__(self, facts: Any, after: Callable[[nn.Module, torch.Tensor], Any] = lambda _, out: out) -> None:
        super().__init__(facts.shape[0], facts.classes)
        self.after = after

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self.after(self, super().forward(input))


def failing(method: str) -> Make:
    def fail(*_: Any, **__: Any) -> None:
        raise ValueError("not\nmine")

    return lambda facts: type("Own", (Net,), {method: fail})(facts)


def ends_in(after: Callable[[nn.Module, torch.Tensor], Any]) -> Make:
    return lambda facts: Net(facts, after)


def changed(change: Callable[[nn.Linear], object]) -> Make:
    def make(facts: Any) -> nn.Module:
        network = Net(facts)
        change(network)
        return network

    return make


RAISED = r"network must be a module that can be read, moved and trained, but that raised "
REFUSED: dict[str, tuple[Make, str]] = {
    **{name: (failing(name), f"{RAISED}ValueError: not (") for name in ("to", "_apply", "named_parameters", "train")},
    **{name: (failing(name), f"{RAISED}ValueError: not (") for name in ("eval", "named_buffers", "children")},
    "no hash": (lambda facts: type("Own", (Net,), {"__hash__": None})(facts), f"{RAISED}TypeError: unhashable"),
    "a loop": (changed(lambda net: net.add_module("again", net)), f"{RAISED}RecursionError: "),
    "a float": (changed(lambda net: net._parameters.update(bias=3.0)), "bias must be a tensor, got float; "),  # type: ignore[arg-type]
    "sparse": (
        changed(lambda net: setattr(net, "weight", nn.Parameter(net.weight.detach().to_sparse()))),
        "weight must be dense, got torch.sparse_coo; ",
    ),
    "nested": (ends_in(lambda _, out: torch.nested.nested_tensor(list(out))), "got torch.float32 nested"),
    "subclass": (ends_in(lambda _, out: out.as_subclass(Mine)), "got Mine torch.float32 [2, "),
    "training": (ends_in(lambda net, out: out[:, 1:] if net.training else out), " in training, got torch.float32 [2, "),
    "one": (lambda facts: nn.Sequential(Net(facts), nn.BatchNorm1d(facts.classes)), "must take a batch of one example"),
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("name", REFUSED)
def test_an_odd_network_is_refused_in_one_line(tiny: Tiny, name: str):
    own_models.LAYERS["tested"], message = REFUSED[name]
    config = tiny("local.batch_size=1", "engine=loop")
    with pytest.raises(ConfigError, match=re.escape(message)) as refused:
        world_of({**config, "model": {"_target_": "own_models.Layered", "layers": "tested"}})
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 1000


def test_a_look_at_the_layers_is_refused_in_one_line():
    own_models.LAYERS["tested"] = lambda _: Net
    model, facts = own_models.Layered(layers="tested"), Facts((4,), 3, 100)
    with pytest.raises(ConfigError, match=r"network must return a torch\.nn\.Module, got type"):
        readable_network(model, facts)
    own_models.LAYERS["tested"] = failing("named_modules")
    with pytest.raises(ConfigError, match="moved and trained, but that raised ValueError: not "):
        readable_network(model, facts)
