"""What a user's network raises when fedexp builds it, reads its layers or tries it is one line."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from fedexp.core.errors import ConfigError, RunError
from fedexp.core.part import describe_choice, option
from fedexp.core.user_code import refuse_changed_settings, refuse_errors
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.layers import feature_layer
from fedexp.parts.model.contract import Model
from fedexp.process.user_code_errors import arose_in_part


@contextmanager
def refuse_network_errors(model: Model) -> Iterator[None]:
    """Turns whatever is raised inside, but by a part such as the loss, into a ConfigError about the network."""
    message = f"{describe_choice('model', model)}: network must be a module that can be read, moved and trained, but"
    with refuse_errors(
        f"{message} that raised", allowed=(RunError, torch.OutOfMemoryError), unless=arose_in_part, with_line=True
    ):
        yield


def new_network(model: Model, facts: Facts) -> nn.Module:
    """Builds a network.

    Raises:
        ConfigError: it is none, or changes a setting of the process.
    """
    subject = f"{describe_choice('model', model)}: network"
    with refuse_changed_settings(subject):
        network = model.network(facts)
    if not isinstance(network, nn.Module):
        raise ConfigError(f"{subject} must return a torch.nn.Module, got {type(network).__name__}")
    return network


def readable_network(model: Model, facts: Facts) -> nn.Module:
    """Builds a network for a look at its layers, all of which can be read."""
    network = new_network(model, facts)
    with refuse_network_errors(model):
        list(network.modules())
        list(network.named_parameters())
        list(network.named_buffers())
    return network


def refuse_without_features(use: str, model: Model, facts: Facts) -> None:
    """Raises ConfigError if no layer of the model takes features; `use` says who looks at what a layer is given."""
    if feature_layer(readable_network(model, facts)) is None:
        raise ConfigError(
            f"{use} what the last linear layer is given, but model={option(model)} has none, and no layer with "
            "takes_features = True; use local=sgd"
        )
