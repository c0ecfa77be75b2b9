"""Builds a model's network, and checks it before anything is trained.

Legend: B batch.
"""

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
from fedexp.training.client.carried_state import refuse_batch_dependence, refuse_carried_state
from fedexp.training.client.examples import Examples
from fedexp.training.client.objective import example_losses
from fedexp.training.client.parameter_views import training_mode
from fedexp.training.client.plain_network import refuse_modules, tie_shared
from fedexp.training.client.precision import in_bf16

STEPS, BATCH = 50, 64  # steps of training, and their examples at most, in one of which a parameter must have a part
NetworkBuilder = Callable[[], nn.Module]  # builds it anew each time, always with the same first values


def build_network(model: Model, facts: Facts, seed: int, device: torch.device, precision: str = "float32") -> nn.Module:
    """Builds the network with its initial values: a user's model sets them itself, seeded by the run.

    With `precision` bf16 its layers compute in that.

    Raises:
        ConfigError: it is not a network, or it draws from a generator that no run can seed.
    """
    subject = describe_choice("model", model)
    with seed_torch(int(stream(seed, "network").integers(2**62)), device), process_unchanged(model, "network"):
        network = model.network(facts)
    if not isinstance(network, nn.Module):
        raise ConfigError(f"{subject}: network must return a torch.nn.Module, got {type(network).__name__}")
    refuse_modules(subject, network)
    tie_shared(subject, network)
    model.initialise(network, stream(seed, "model"))
    network = network.to(device)
    return in_bf16(network) if precision == "bf16" else network


def refuse_untrainable(
    model: Model, build: NetworkBuilder, examples: Examples, outputs: tuple[int, ...], loss: Loss
) -> None:
    """Raises ConfigError if a network cannot be trained; tries it on a few examples.

    It must give `outputs`, the shape for one of them, have gradients of this loss, and depend on nothing but its
    entries.
    """
    subject, network, second_network, first_batch = describe_choice("model", model), build(), build(), slice(0, BATCH)
    positions = examples.to_device(np.linspace(0, len(examples) - 1, 4).astype(int))
    inputs = examples.inputs(slice(0, 2)).clone()

    def forward(network: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return try_forward(subject, network, x.clone())

    with seed_torch(0, inputs.device), process_unchanged(model, "forward"):
        refuse_entries(subject, network)
        refuse_first_values(subject, network, second_network)
        refuse_norms(subject, network)
        evaluated = refuse_answers(subject, network, inputs, outputs)
        batches = ((examples.inputs(part), examples.y[part]) for part in (slice(0, 2), *[first_batch] * STEPS))
        trained = refuse_gradients(subject, network, batches, loss)
    other_inputs = examples.inputs(positions.flip(0)[: len(inputs)])
    mixed_positions = positions.where(positions == positions[-1], positions[0])
    with process_unchanged(model, "forward"):
        refuse_carried_state(subject, second_network, inputs, other_inputs, [evaluated, trained], forward)
        refuse_batch_dependence(
            subject, second_network, examples.inputs(positions), examples.inputs(mixed_positions), forward
        )


def refuse_norms(subject: str, network: nn.Module) -> None:
    """Raises ConfigError if batch normalisation has no running statistics that travel with a model."""
    for name, layer in network.named_modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            if layer.running_mean is None:
                raise ConfigError(
                    f"{subject}: {name} must have running statistics, got track_running_stats=False: an answer would "
                    "depend on the other examples of its batch; set track_running_stats=True, or take GroupNorm"
                )
            if layer.momentum is None:
                raise ConfigError(
                    f"{subject}: {name} must have a momentum, got None: an average over all steps would go from client "
                    "to client; set momentum=0.1"
                )


def refuse_entries(subject: str, network: nn.Module) -> None:
    """Raises ConfigError unless all parameters are finite trainable floats of the default dtype."""
    if not any(True for _ in network.parameters()):
        raise ConfigError(f"{subject}: network must have parameters to train, but has none")
    for name, entry in network.named_parameters():
        if entry.dtype != torch.get_default_dtype():
            raise ConfigError(f"{subject}: parameter {name} must be {torch.get_default_dtype()}, got {entry.dtype}")
        if not entry.requires_grad:
            raise ConfigError(
                f"{subject}: parameter {name} is frozen (requires_grad=False), but every parameter of a network is "
                "trained; make it a buffer: register_buffer"
            )
        if not entry.isfinite().all():
            raise ConfigError(f"{subject}: parameter {name} must begin with finite numbers, but some are not")


def refuse_first_values(subject: str, network: nn.Module, second_network: nn.Module) -> None:
    """Raises ConfigError unless two builds of a network have equal initial values and share no parameter."""
    second = dict(second_network.named_parameters())
    for name, entry in network.named_parameters():
        if entry is second.get(name):
            raise ConfigError(
                f"{subject}: network must make every parameter anew in each call, but {name} is the same one"
            )
        if name not in second or not torch.equal(entry, second[name]):
            raise ConfigError(
                f"{subject}: parameter {name} must begin with the same numbers in each call of network, but does not; "
                "draw them with torch, which a run seeds"
            )


def refuse_answers(subject: str, network: nn.Module, inputs: torch.Tensor, outputs: tuple[int, ...]) -> torch.Tensor:
    """Returns the network's output for `inputs [B, *shape]` in evaluation mode.

    Raises:
        ConfigError: that is not `[B, *outputs]`, or it draws, or it writes to the inputs.
    """
    before, original_inputs = torch.get_rng_state(), inputs.clone()
    with torch.no_grad():
        answers = try_forward(subject, network.eval(), inputs)
    wanted = (len(inputs), *outputs)
    floats = isinstance(answers, torch.Tensor) and answers.is_floating_point() and is_real(answers)
    axes = "examples, classes" if len(outputs) == 1 else "examples, tokens, known tokens"
    if not floats or tuple(answers.shape) != wanted or answers.device != inputs.device:
        raise ConfigError(
            f"{subject}: forward must return float logits {list(wanted)} ({axes}) for examples {list(inputs.shape)}, "
            f"got {type_and_shape(answers)}"
        )
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


def refuse_gradients(
    subject: str, network: nn.Module, batches: Iterator[tuple[torch.Tensor, torch.Tensor]], loss: Loss
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
            used = parameters_with_gradient(subject, network, example_losses(loss, answers, targets).sum())
            first, unused_names = (
                answers.detach() if not len(first) else first,
                [name for name in unused_names if name not in used],
            )
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
