"""What every model must keep, found from conf/, and what those of images refuse."""

import pytest
import torch
from composing import options
from networks import HAR, TABLE
from worlds import Tiny

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.values import Layout
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.model.complex_cnn import ComplexCNN
from fedexp.parts.model.contract import Model
from fedexp.parts.model.keras_cnn import KerasCNN
from fedexp.parts.model.simple_cnn import SimpleCNN


@pytest.mark.parametrize("model", [SimpleCNN(), ComplexCNN(), KerasCNN()])
@pytest.mark.parametrize("shape", [HAR, TABLE, (1, 3, 3)])
def test_image_networks_say_what_they_need(model: Model, shape: tuple[int, ...]):
    with pytest.raises(ConfigError, match=r"needs images .* have shape .*; use model=mlp"):
        model.refuse(Facts(shape, 10, 1))


@pytest.mark.parametrize("option", options("model"))
@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 32), (6, 128), (561,), (8,)])
def test_every_model_runs_or_says_why_not(tiny: Tiny, option: str, shape: tuple[int, ...]):
    model, facts = spec.build(tiny(f"model={option}")).model, Facts(shape, 7, 10)
    try:
        model.refuse(facts)
    except ConfigError as error:
        assert str(error).startswith(f"model={option} needs")  # noqa: PT017 - either outcome is right
        return
    network = model.network(facts)
    logits = network(torch.randn(3, *shape))
    assert logits.shape == (3, 7)
    grads = torch.autograd.grad(logits.sum(), list(network.parameters()), allow_unused=True)
    assert all(grad is not None for grad in grads)
    assert Layout.of(network).size == sum(grad.numel() for grad in grads if grad is not None) + sum(
        buffer.numel() for buffer in network.buffers()
    )
