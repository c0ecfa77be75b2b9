"""Who holds which training example of a run: the clients, and the server for two purposes.

The server's validation examples are those on which models are compared, its public ones those that it may train on and
whose answers it may ask for; neither overlaps with the other or with what any client holds. Public are a fraction of
the training examples (`scenario.public_fraction`), drawn before the federation divides the rest, and whatever the
federation itself leaves to the server. What an audit plants lies behind all of them.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch

from fedexp.audits.audit import Canaries
from fedexp.data.dataset import Data, Split
from fedexp.experiment import Experiment
from fedexp.federations.held_out import hold_out
from fedexp.federations.owners import gather
from fedexp.federations.partition import Partition
from fedexp.streams import stream


@dataclass(frozen=True)
class Division:
    """Numbers of training examples."""

    partition: Partition  # what the clients train on
    held_out: Partition  # what they keep to measure their own models on
    validation: np.ndarray  # the server's, ascending; none unless some part asks for them
    public: np.ndarray  # the server's, ascending


def divide(exp: Experiment, data: Data) -> Division:
    """Shares out the training examples."""
    rest, validation = split_validation(exp, len(data.train.y))
    rest, drawn = split_public(exp, rest, len(data.train.y))
    whole = federate(exp, data, rest)
    partition, held_out = hold_out(whole, exp.evaluation.personal_fraction, stream(exp.seed, "held_out"))
    return Division(partition, held_out, validation, np.sort(np.concatenate([drawn, whole.server])))


def split_validation(exp: Experiment, examples: int) -> tuple[np.ndarray, np.ndarray]:
    """Training examples for the clients, and those that the server keeps if some part asks for validation data."""
    count = int(exp.evaluation.validation_fraction * examples) if exp.needs_validation else 0
    order = stream(exp.seed, "validation").permutation(examples) if count else np.arange(examples)
    return np.sort(order[count:]), np.sort(order[:count])


def split_public(exp: Experiment, rest: np.ndarray, examples: int) -> tuple[np.ndarray, np.ndarray]:
    """What the `rest` leaves to the clients, and the fraction of all examples that becomes public; both ascending."""
    count = exp.scenario.public_count(examples)
    order = stream(exp.seed, "public").permutation(rest) if count else rest
    return np.sort(order[count:]), np.sort(order[:count])


def federate(exp: Experiment, data: Data, rest: np.ndarray) -> Partition:
    """The federation over the training examples that the server has not taken."""
    subject = None if data.train.subject is None else data.train.subject.numpy()[rest]
    labels = data.train.y.numpy()[rest]
    partition = exp.federation.split(labels, subject, len(data.class_names), stream(exp.seed, "federation"))
    return Partition(partition.offsets, rest[partition.indices], rest[partition.server])


def drawn_canaries(exp: Experiment, data: Data, partition: Partition, malicious: np.ndarray) -> Canaries:
    """What the audit plants at the honest clients that hold examples."""
    honest = np.setdiff1d(np.flatnonzero(partition.sizes), malicious)
    return exp.audit.plant(data.train, honest, len(data.class_names), stream(exp.seed, "audit"))


def planted(data: Data, partition: Partition, canaries: Canaries) -> tuple[Data, Partition]:
    """The training examples with all canaries behind them, and the clients with those that are included."""
    if not len(canaries.index):
        return data, partition
    nobody, examples = partition.clients, len(data.train.y)
    owner = np.full(examples + len(canaries.index), nobody)
    owner[partition.indices] = np.repeat(np.arange(partition.clients), partition.sizes)
    owner[canaries.index] = np.where(canaries.included, canaries.owner, nobody)
    train = Split(torch.cat([data.train.x, canaries.x]), torch.cat([data.train.y, canaries.y]))
    return replace(data, train=train), gather(owner, partition.clients)
