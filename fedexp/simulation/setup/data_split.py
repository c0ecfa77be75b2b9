"""Splits the training examples of a run over the clients and the server.

The server's validation examples are those on which models are compared, its public ones those that it may train on and
whose answers it may ask for; neither overlaps with the other or with what any client holds. With
`evaluation.validation_at=clients` each client keeps validation examples of its own instead. Public are a fraction of
the training examples (`scenario.public_fraction`), drawn before the federation divides the rest, and whatever the
federation itself leaves to the server.

With `evaluation.unseen_fraction` some clients are set apart after that. They are no clients to the rounds: the others
are numbered anew, in the same order, and those set apart follow them.
"""

import logging
from dataclasses import dataclass, replace

import numpy as np
import torch

from fedexp.core.errors import ConfigError
from fedexp.core.part import describe_choice
from fedexp.core.random_streams import stream
from fedexp.parts.dataset.contract import Data
from fedexp.parts.federation.held_out import hold_out
from fedexp.parts.federation.own_tests import assign_test_examples
from fedexp.parts.federation.partition import Partition
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.setup.site_names import find_site_names

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DataSplit:
    """Indices of training examples by holder and purpose."""

    partition: Partition  # what the clients train on
    held_out: Partition  # what they measure models on: training examples, or their own of the test data
    client_validation: Partition  # training examples that they set apart to choose by, if that is asked for
    judging: Partition  # training examples that they judge each other's models by, if the local rule has them do so
    unseen: Partition  # what the clients that never train measure models on
    validation: np.ndarray  # the server's, ascending; none unless some part asks for them there
    public: np.ndarray  # the server's, ascending
    names: tuple[str, ...] | None = None  # of the clients, those that never train behind the others


def split_data(exp: Experiment, data: Data) -> tuple[DataSplit, Data]:
    """Splits the training examples; also returns the data with the clients' feature shifts applied.

    Raises:
        ConfigError: nobody would train, or have anything to train on.
    """
    remaining, validation = split_validation(exp, len(data.train.y))
    remaining, public = draw_numbers(exp, "public", remaining, exp.scenario.public_count(len(data.train.y)))
    warn_of_unused_subjects(exp, data)
    all_clients = federate(exp, data, remaining)
    training, unseen = hold_out_clients(exp, all_clients.clients)
    partition, unseen_examples = all_clients.of(training), all_clients.of(unseen)
    if exp.evaluation.own_test:
        tests = client_test_sets(exp, data, all_clients)
        held_out, unseen_examples = tests.of(training), tests.of(unseen)
    else:
        labels = data.train.y.numpy() if exp.evaluation.personal_split == "by_class" else None
        draws = stream(exp.seed, "held_out")
        partition, held_out = hold_out(partition, exp.evaluation.personal_fraction, draws, labels)
    partition, client_validation = hold_out(
        partition, exp.client_validation_share, stream(exp.seed, "client_validation")
    )
    partition, judging = hold_out(partition, exp.local.judging_fraction, stream(exp.seed, "judging"))
    if not len(partition.indices):
        raise ConfigError(
            f"{describe_choice('federation', exp.federation)} must give an example to some client that trains, got "
            f"none for {partition.clients} clients of {len(remaining)} training examples; lower scenario.clients or "
            "use more of them"
        )
    public = np.sort(np.concatenate([public, all_clients.server]))
    names = find_site_names(exp, data, all_clients)
    names = names and tuple(names[client] for client in (*training, *unseen))
    split = DataSplit(partition, held_out, client_validation, judging, unseen_examples, validation, public, names)
    return split, shift_features(exp, data, all_clients)


def warn_of_unused_subjects(exp: Experiment, data: Data) -> None:
    """Warns if the dataset knows the subject of each example and the federation does not use it."""
    if data.train.subject is not None and exp.dataset.subject_option and not exp.federation.by_subject:
        log.warning(
            "%s says whose each example is, but %s does not ask; federation=subject makes a client of each of them",
            exp.dataset.subject_option,
            describe_choice("federation", exp.federation),
        )


def hold_out_clients(exp: Experiment, clients: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the clients that train, `[n]`, and of those that never train, `[m]`, both ascending.

    Raises:
        ConfigError: nobody would train.
    """
    count = exp.evaluation.unseen_count(clients)
    if count >= clients:
        raise ConfigError(
            f"evaluation.unseen_fraction={exp.evaluation.unseen_fraction:g} needs at least two clients, but this "
            f"federation has {clients}; raise scenario.clients or set it to 0"
        )
    return draw_numbers(exp, "unseen", np.arange(clients), count)


def client_test_sets(exp: Experiment, data: Data, all_clients: Partition) -> Partition:
    """The clients' own test examples, found by subject.

    Raises:
        ConfigError: the dataset does not say whose its test examples are, or no client has any.
    """
    train, test = data.train.subject, data.test.subject
    if train is not None and test is not None:
        partition = assign_test_examples(all_clients, train.numpy(), test.numpy())
        if len(partition.indices):
            return partition
    unknown = train is None or test is None or exp.federation.by_subject
    cure = "evaluation.personal_fraction=0.2" if unknown else "federation=subject"
    raise ConfigError(
        "evaluation.own_test=true needs test examples of the people (or devices) that are clients, but "
        f"{describe_choice('federation', exp.federation)} gives no client any; use {cure}"
    )


def split_validation(exp: Experiment, examples: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers `[n]` of the clients' training examples, and `[m]` of the server's, if a part needs validation data.

    Raises:
        ConfigError: it needs some, but there is none.
    """
    count = int(exp.server_validation_share * examples + 1e-9)
    if exp.server_validation_share and not count:
        raise ConfigError(
            "evaluation.validation_fraction must leave the server at least one of the training examples, got "
            f"{exp.evaluation.validation_fraction:g} of {examples}; raise it"
        )
    return draw_numbers(exp, "validation", np.arange(examples), count)


def refuse_no_validation(exp: Experiment, client_validation: Partition, malicious: np.ndarray) -> None:
    """Raises ConfigError where clients are to set validation examples apart, but none can but the `malicious [n]`."""
    if exp.client_validation_share and not len(client_validation.holders(malicious)):
        raise ConfigError(
            "evaluation.validation_at=clients needs an honest client with at least two examples to train on, got none; "
            "have fewer clients, or use evaluation.validation_at=null"
        )


def draw_numbers(exp: Experiment, name: str, numbers: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Splits `numbers [S]` into those left, `[n]`, and `count` drawn by the stream of this name; both ascending."""
    order = stream(exp.seed, name).permutation(numbers) if count else numbers
    return np.sort(order[count:]), np.sort(order[:count])


def federate(exp: Experiment, data: Data, remaining: np.ndarray) -> Partition:
    """Divides the training examples `remaining [S]` over the clients."""
    federation = exp.honest_federation
    all_subjects = federation.resolve_subjects(None if data.train.subject is None else data.train.subject.numpy())
    subject, labels = None if all_subjects is None else all_subjects[remaining], data.train.labels[remaining]
    partition = federation.split(labels, subject, len(data.class_names), stream(exp.seed, "federation"))
    return Partition(partition.offsets, remaining[partition.indices], remaining[partition.server])


def shift_features(exp: Experiment, data: Data, all_clients: Partition) -> Data:
    """The data with each client's feature shift applied to its training examples, if the federation has one."""
    if not exp.federation.shifts_features:
        return data
    x: torch.Tensor | None = None
    for client in np.flatnonzero(all_clients.sizes).tolist():
        index = torch.from_numpy(all_clients.shard(client))
        rng = stream(exp.seed, "federation", "seen", client)
        client_x = exp.federation.shift_features(data.train.x[index], client, all_clients.clients, data.scale, rng)
        x = data.train.x.to(client_x.dtype, copy=True) if x is None else x
        x[index] = client_x
    groups, client_groups = data.groups, exp.federation.groups(all_clients.clients)
    if client_groups is not None:
        groups = np.full(len(data.train.y), -1, dtype=np.int64)
        groups[all_clients.indices] = np.repeat(client_groups, all_clients.sizes)
    return data if x is None else replace(data, train=replace(data.train, x=x), groups=groups)
