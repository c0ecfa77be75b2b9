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

from fedexp.core.errors import ConfigError, first_line
from fedexp.core.fields import brief, plain
from fedexp.core.part import named
from fedexp.core.random_streams import stream
from fedexp.core.torch_generator import begun_at
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.loss.contract import Loss
from fedexp.parts.model.contract import Model
from fedexp.training.binding import training_on
from fedexp.training.examples import Examples
from fedexp.training.losses import loss_of_each
from fedexp.training.precision import in_bf16

Network = Callable[[], nn.Module]  # builds it anew each time, always with the same first values


def built(model: Model, facts: Facts, seed: int, device: torch.device, precision: str = "float32") -> nn.Module:
    """The network with its first values: a user's own sets them itself, seeded by the run; ours draw theirs.

    With `precision` bf16 its layers compute in that.

    Raises:
        ConfigError: it is not a network, or it draws from a generator that no run can seed.
    """
    with begun_at(int(stream(seed, "network").integers(2**62)), device), unseeded_refused(model, "network"):
        network = model.network(facts)
    if not isinstance(network, nn.Module):
        raise ConfigError(
            f"{named('model', model)}: network must return a torch.nn.Module, got {type(network).__name__}"
        )
    model.initialise(network, stream(seed, "model"))
    network = network.to(device)
    return in_bf16(network) if precision == "bf16" else network


def refuse(model: Model, network: nn.Module, examples: Examples, outputs: tuple[int, ...], loss: Loss) -> None:
    """Raises ConfigError if a network cannot be trained; tries it on two of the examples.

    It must give `outputs`, the shape for one of them, and have gradients of this loss.
    """
    who, inputs, targets = named("model", model), examples.inputs(slice(0, 2)), examples.y[:2]
    with begun_at(0, inputs.device), unseeded_refused(model, "forward"):
        refuse_entries(who, network)
        refuse_answers(who, network, inputs, outputs)
        refuse_gradients(who, network, inputs, lambda answers: loss_of_each(loss, answers, targets))
    for name, layer in network.named_modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.momentum is None:
            raise ConfigError(
                f"{who}: {name} must have a momentum, got None: an average over all steps would go from client to "
                "client; set momentum=0.1"
            )


def refuse_entries(who: str, network: nn.Module) -> None:
    """Raises ConfigError if the network's entries do not make a row of floats that are all trained."""
    if not any(True for _ in network.parameters()):
        raise ConfigError(f"{who}: network must have parameters to train, but has none")
    for name, entry in network.named_parameters():
        if entry.dtype != torch.get_default_dtype():
            raise ConfigError(f"{who}: parameter {name} must be {torch.get_default_dtype()}, got {entry.dtype}")
        if not entry.requires_grad:
            raise ConfigError(
                f"{who}: parameter {name} is frozen (requires_grad=False), but every parameter of a network is "
                "trained; make it a buffer: register_buffer"
            )
        if not entry.isfinite().all():
            raise ConfigError(f"{who}: parameter {name} must begin with finite numbers, but some are not")


def refuse_answers(who: str, network: nn.Module, inputs: torch.Tensor, outputs: tuple[int, ...]) -> None:
    """Raises ConfigError if it does not give `[B, *outputs]` for `inputs [B, *shape]`, or draws in evaluation."""
    before = torch.get_rng_state()
    with torch.no_grad():
        answers = tried(who, network.eval(), inputs)
    wanted = (len(inputs), *outputs)
    floats = isinstance(answers, torch.Tensor) and answers.is_floating_point() and plain(answers)
    axes = "examples, classes" if len(outputs) == 1 else "examples, tokens, known tokens"
    if not floats or tuple(answers.shape) != wanted or answers.device != inputs.device:
        raise ConfigError(
            f"{who}: forward must return float logits {list(wanted)} ({axes}) for examples {list(inputs.shape)}, got "
            f"{brief(answers)}"
        )
    if not torch.equal(before, torch.get_rng_state()):
        raise ConfigError(
            f"{who}: forward must not draw random numbers in evaluation, but does; draw them only if self.training "
            "(F.dropout(x, p, self.training))"
        )


def refuse_gradients(
    who: str, network: nn.Module, inputs: torch.Tensor, losses: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    """Raises ConfigError if a parameter has no dense gradient on `inputs [B, *shape]`, or training moves an integer.

    `losses` is what examples cost, `[B]`, by what the network says of them.
    """
    whole = {name: entry.clone() for name, entry in network.named_buffers() if not entry.is_floating_point()}
    with training_on(network):
        loss = losses(tried(who, network, inputs)).sum()
        names, entries = zip(*network.named_parameters(), strict=True)
        for name, grad in zip(names, torch.autograd.grad(loss, entries, allow_unused=True), strict=True):
            if grad is None:
                raise ConfigError(
                    f"{who}: parameter {name} has no part in what forward returns; use it or leave it out"
                )
            if grad.is_sparse:
                raise ConfigError(f"{who}: parameter {name} must have a dense gradient; set sparse=False")
        for name, entry in network.named_buffers():
            if name in whole and not name.endswith("num_batches_tracked") and not torch.equal(entry, whole[name]):
                raise ConfigError(
                    f"{who}: buffer {name} moves in training, but only float entries travel with a model; make it float"
                )


def tried(who: str, network: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    """The network's output (any shape) for `inputs [B, *shape]`; whatever it raises becomes a ConfigError."""
    try:
        return network(inputs)
    except Exception as error:
        raise ConfigError(
            f"{who}: forward must take examples {list(inputs.shape)}, but raised {type(error).__name__}: "
            f"{first_line(error)}"
        ) from error


@contextmanager
def unseeded_refused(model: Model, method: str) -> Iterator[None]:
    """Raises ConfigError if something inside draws from a global generator, which the run does not seed."""
    before = _unseeded()
    yield
    for name, state in _unseeded().items():
        if state != before[name]:
            raise ConfigError(
                f"{named('model', model)}: {method} must draw with torch, which a run seeds, but drew from {name}; use "
                "torch.rand or a generator with a seed of its own"
            )


def _unseeded() -> dict[str, bytes]:
    """Where the generators of the process stand."""
    numpy = np.random.get_state(legacy=False)  # noqa: NPY002 - only looked at
    return {"Python's random": pickle.dumps(random.getstate()), "NumPy's global generator": pickle.dumps(numpy)}
