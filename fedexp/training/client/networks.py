"""Builds a model's network, and checks it before anything is trained.

Legend: B batch.
"""

import logging
import pickle
import random  # noqa: TID251 - to check that nobody draws from it
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn

from fedexp.core.errors import ConfigError
from fedexp.core.fields import is_real, type_and_shape
from fedexp.core.part import describe_choice
from fedexp.core.random_streams import stream
from fedexp.core.torch_generator import seed_torch
from fedexp.core.user_code import refuse_changed_settings, refuse_errors
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.loss.contract import Loss
from fedexp.parts.model.contract import Model
from fedexp.parts.network_errors import new_network, refuse_network_errors
from fedexp.training.client.carried_state import refuse_batch_dependence, refuse_carried_state
from fedexp.training.client.examples import Examples
from fedexp.training.client.objective import example_losses
from fedexp.training.client.parameter_views import training_mode
from fedexp.training.client.plain_network import (
    refuse_entries,
    refuse_first_values,
    refuse_modules,
    refuse_norms,
    tie_shared,
)
from fedexp.training.client.precision import in_bf16
from fedexp.training.client.strided_convolutions import order_channels_first

STEPS, BATCH = 50, 64  # steps of training, and their examples at most, in one of which a parameter must have a part
log = logging.getLogger(__name__)

NetworkBuilder = Callable[[], nn.Module]  # builds it anew each time, always with the same first values


def build_network(model: Model, facts: Facts, seed: int, device: torch.device, precision: str = "float32") -> nn.Module:
    """Builds the network with its initial values: a user's model sets them itself, seeded by the run.

    With `precision` bf16 its layers compute in that.

    Raises:
        ConfigError: it is not a network, or it draws from a generator that no run can seed.
    """
    subject = describe_choice("model", model)
    with seed_torch(int(stream(seed, "network").integers(2**62)), device), process_unchanged(model, "network"):
        network = new_network(model, facts)
    with refuse_network_errors(model):
        refuse_modules(subject, network)
        tie_shared(subject, network)
        model.initialise(network, stream(seed, "model"))
        network = order_channels_first(network.to(device))
        return in_bf16(network) if precision == "bf16" else network


def refuse_untrainable(
    model: Model, build: NetworkBuilder, examples: Examples, outputs: tuple[int, ...], loss: Loss
) -> None:
    """Raises ConfigError if a network cannot be trained; tries it on a few examples.

    It must give `outputs`, the shape for one of them, have gradients of this loss, and depend on nothing but its
    entries.
    """
    network, second_network = build(), build()
    subject, first_batch = describe_choice("model", model), slice(0, BATCH)
    positions = examples.to_device(np.linspace(0, len(examples) - 1, 4).astype(int))
    inputs = examples.inputs(slice(0, 2)).clone()

    def forward(network: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return try_forward(subject, network, x.clone())

    with refuse_network_errors(model), seed_torch(0, inputs.device), process_unchanged(model, "forward"):
        refuse_entries(subject, network)
        refuse_first_values(subject, network, second_network)
        refuse_norms(subject, network)
        evaluated = refuse_answers(subject, network, inputs, outputs)
        warn_of_probabilities(subject, evaluated, loss)
        batches = ((examples.inputs(part), examples.y[part]) for part in (slice(0, 2), *[first_batch] * STEPS))
        trained = refuse_gradients(subject, network, batches, loss, outputs)
    other_inputs = examples.inputs(positions.flip(0)[: len(inputs)])
    mixed_positions = positions.where(positions == positions[-1], positions[0])
    with refuse_network_errors(model), process_unchanged(model, "forward"):
        refuse_carried_state(subject, second_network, inputs, other_inputs, [evaluated, trained], forward)
        refuse_batch_dependence(
            subject, second_network, examples.inputs(positions), examples.inputs(mixed_positions), forward
        )


def warn_of_probabilities(subject: str, answers: torch.Tensor, loss: Loss) -> None:
    """Warns of answers `[B, K]` that are probabilities already, where the loss makes them from logits once more."""
    if loss.is_log_likelihood and answers.dim() == 2 and answers.shape[1] > 1 and bool((answers >= 0).all()):
        sums = answers.sum(dim=1)
        if torch.allclose(sums, torch.ones_like(sums), atol=1e-4):
            log.warning("%s returns probabilities, but the loss takes logits; leave the softmax out", subject)


def refuse_answers(subject: str, network: nn.Module, inputs: torch.Tensor, outputs: tuple[int, ...]) -> torch.Tensor:
    """Returns the network's output for `inputs [B, *shape]` in evaluation mode.

    Raises:
        ConfigError: that is not `[B, *outputs]`, or it draws, or it writes to the inputs.
    """
    before, original_inputs = torch.get_rng_state(), inputs.clone()
    with torch.no_grad():
        answers = try_forward(subject, network.eval(), inputs)
    refuse_shape(subject, answers, inputs, outputs)
    if not torch.equal(before, torch.get_rng_state()):
        raise ConfigError(
            f"{subject}: forward must not draw random numbers in evaluation, but does; draw them only if self.training "
            "(F.dropout(x, p, self.training))"
        )
    if not torch.equal(inputs, original_inputs):
        raise ConfigError(
            f"{subject}: forward must not write to the examples that it is given; take inplace=True out of its first "
            "layer"
        )
    return answers


def refuse_shape(
    subject: str, answers: torch.Tensor, inputs: torch.Tensor, outputs: tuple[int, ...], mode: str = ""
) -> None:
    """Raises ConfigError unless an output for `inputs [B, *shape]` is a plain float tensor `[B, *outputs]`."""
    wanted = (len(inputs), *outputs)
    is_tensor = type(answers) in (torch.Tensor, nn.Parameter) and not answers.is_nested
    floats = is_tensor and answers.is_floating_point() and is_real(answers)
    axes = "examples, classes" if len(outputs) == 1 else "examples, tokens, known tokens"
    if not floats or tuple(answers.shape) != wanted or answers.device != inputs.device:
        raise ConfigError(
            f"{subject}: forward must return float logits {list(wanted)} ({axes}) for examples {list(inputs.shape)}"
            f"{mode}, got {type_and_shape(answers)}"
        )


def refuse_gradients(
    subject: str,
    network: nn.Module,
    batches: Iterator[tuple[torch.Tensor, torch.Tensor]],
    loss: Loss,
    outputs: tuple[int, ...],
) -> torch.Tensor:
    """Returns the training output `[B, ...]` of the first batch; more `(inputs, targets)` serve rarely used layers.

    Raises:
        ConfigError: a parameter has no dense gradient in any of the batches, or training moves an integer.
    """
    integer_buffers = {name: entry.clone() for name, entry in network.named_buffers() if not entry.is_floating_point()}
    first, unused_names = torch.empty(0), [name for name, _ in network.named_parameters()]
    with training_mode(network):
        for inputs, targets in batches:
            answers = try_forward(subject, network, inputs)
            refuse_shape(subject, answers, inputs, outputs, " in training")
            used = parameters_with_gradient(subject, network, example_losses(loss, answers, targets).sum())
            first = first if len(first) else answers.detach()
            unused_names = [name for name in unused_names if name not in used]
            refuse_moving_integers(subject, network, integer_buffers)
            if not unused_names:
                return first
    raise ConfigError(
        f"{subject}: parameter {unused_names[0]} has no part in what forward returns, in {STEPS} steps of training; "
        "use it or leave it out"
    )


def refuse_moving_integers(subject: str, network: nn.Module, integer_buffers: dict[str, torch.Tensor]) -> None:
    """Raises ConfigError if an integer buffer (any shape) differs from its value in `integer_buffers`."""
    for name, entry in network.named_buffers():
        if (
            name in integer_buffers
            and not name.endswith("num_batches_tracked")
            and not torch.equal(entry, integer_buffers[name])
        ):
            raise ConfigError(
                f"{subject}: buffer {name} moves in training, but only float entries travel with a model; make it float"
            )


def parameters_with_gradient(subject: str, network: nn.Module, loss: torch.Tensor) -> set[str]:
    """Returns the parameters that have a gradient of a loss (a scalar); ConfigError if autograd fails."""
    names, entries = zip(*network.named_parameters(), strict=True)
    with refuse_errors(f"{subject}: forward must have gradients that torch.autograd.grad can take, but that raised"):
        grads = torch.autograd.grad(loss, entries, allow_unused=True)
    for name, grad in zip(names, grads, strict=True):
        if grad is not None and grad.is_sparse:
            raise ConfigError(f"{subject}: parameter {name} must have a dense gradient; set sparse=False")
    return {name for name, grad in zip(names, grads, strict=True) if grad is not None}


def refuse_single_examples(model: Model, build: NetworkBuilder, examples: Examples) -> None:
    """Raises ConfigError if a network cannot take a batch of one example in training."""
    network, subject = build(), describe_choice("model", model)
    message = f"{subject}: forward must take a batch of one example in training, as some clients have, but raised"
    with (
        refuse_network_errors(model),
        seed_torch(0, examples.x.device),
        training_mode(network),
        torch.no_grad(),
        refuse_errors(message, cure="set local.drop_last=true or another local.batch_size, or take GroupNorm"),
    ):
        network(examples.inputs(slice(0, 1)))


def try_forward(subject: str, network: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    """The network's output (any shape) for `inputs [B, *shape]`; whatever it raises becomes a ConfigError."""
    with refuse_errors(f"{subject}: forward must take examples {list(inputs.shape)}, but raised"):
        return network(inputs)


@contextmanager
def process_unchanged(model: Model, method: str) -> Iterator[None]:
    """Raises ConfigError if the code inside draws from an unseeded generator or changes a global setting."""
    before, subject = _unseeded_states(), f"{describe_choice('model', model)}: {method}"
    with refuse_changed_settings(subject):
        yield
    for name, state in _unseeded_states().items():
        if state != before[name]:
            raise ConfigError(
                f"{subject} must draw with torch, which a run seeds, but drew from {name}; use torch.rand"
            )


def _unseeded_states() -> dict[str, bytes]:
    """Returns the states of the generators that no run seeds: Python's and NumPy's global ones."""
    numpy = np.random.get_state(legacy=False)  # noqa: NPY002 - only looked at
    return {"Python's random": pickle.dumps(random.getstate()), "NumPy's global generator": pickle.dumps(numpy)}
