"""Checks by trying that, in training, an example tells nothing of itself but by its own gradient.

DP-SGD clips each example's gradient and noises their sum. So no answer may depend on the other examples of a batch, and
no buffer may move by them: buffers travel with a model, neither clipped nor noised. Legend: B batch.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from fedexp.core.errors import ConfigError
from fedexp.core.part import describe_choice
from fedexp.core.torch_generator import seed_torch
from fedexp.parts.model.contract import Model
from fedexp.parts.network_errors import refuse_network_errors
from fedexp.training.client.carried_state import SAME_TOLERANCE, is_close
from fedexp.training.client.examples import Examples


def refuse_dependence(model: Model, build: Callable[[], nn.Module], examples: Examples) -> None:
    """Tries the networks that `build` makes on two batches that have only their first and last example in common.

    Their entries are moved from the first values, which may hide what training brings out, such as a gate of 0.

    Raises:
        ConfigError: in training, what it makes of these two, or a buffer, depends on the examples between them.
    """
    x = examples.inputs(examples.to_device(np.linspace(0, len(examples) - 1, 4).astype(int))).clone()
    changed = x.clone()
    changed[1:-1] = x.max() + x.min() - x[1:-1] if x.dtype == torch.int64 else 1 - 2 * x[1:-1]  # tokens stay such
    with refuse_network_errors(model):
        (answers, buffers), (other_answers, other_buffers) = (_train_once(build(), batch) for batch in (x, changed))
    subject = f"privacy clips the gradient of each example, but in training {describe_choice('model', model)}"
    for name, values in buffers.items():
        if not torch.allclose(values, other_buffers[name], rtol=0, atol=0, equal_nan=True):
            raise ConfigError(
                f"{subject} moves its buffer {name} by the examples of a batch, and clients send it as it is, "
                "persistent or not; leave it out (for a normalisation: track_running_stats=False), or use privacy=none"
            )
    if not is_close(answers, other_answers, SAME_TOLERANCE):
        raise ConfigError(
            f"{subject} says of an example what depends on the others of its batch; neither average nor sum over the "
            "examples, or use privacy=none"
        )


def _train_once(network: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """What a new network answers of the first and the last example of `x [B, *shape]`, and its buffers then."""
    with seed_torch(0, x.device), torch.no_grad():
        for entry in network.parameters():
            entry.add_(torch.randn_like(entry), alpha=0.1)
        answers = network.train()(x)
    return answers[[0, -1]], dict(network.named_buffers())
