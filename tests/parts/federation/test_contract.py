"""What every option of the group `federation` promises; dropping a YAML file there enrols it."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from fedexp.config.location import conf_dir
from fedexp.core.errors import ConfigError
from fedexp.core.part import build
from fedexp.parts.dataset.contract import Facts

FOLDER = conf_dir() / "federation"
OPTIONS = sorted({path.stem for path in FOLDER.glob("*.yaml")} - {"file"})  # whose file says who has what


def option(name, clients):
    config = OmegaConf.create({"scenario": {"clients": clients}, "federation": OmegaConf.load(FOLDER / f"{name}.yaml")})
    plain = OmegaConf.to_container(config, resolve=True)
    assert isinstance(plain, dict)
    return build(plain["federation"], "federation")


def split(name, clients, labels, classes, seed=0):
    federation = option(name, clients)
    subjects = np.random.default_rng(9).integers(0, 7, len(labels)) * 3
    federation.refuse(Facts(shape=(1, 4, 4), classes=classes, train_size=len(labels), subjects=7))
    return federation.split(labels, subjects, classes, np.random.default_rng(seed))


def possible(name, clients, labels, classes, seed=0):
    try:
        return split(name, clients, labels, classes, seed)
    except ConfigError:
        assume(False)


cases = {
    "clients": st.integers(1, 40),
    "labels": st.lists(st.integers(0, 5), min_size=1, max_size=200).map(lambda given: np.array(given, dtype=np.int64)),
    "seed": st.integers(0, 2**32),
}


def test_the_federations_of_the_field_are_options():
    own = {"iid", "central", "subject", "dirichlet", "dirichlet_clients", "shamsian", "shards", "classes", "lognormal"}
    assert own | {"quantity", "power_law", "sizes", "feature_noise", "rotation"} <= set(OPTIONS)


@pytest.mark.parametrize("name", OPTIONS)
@given(**cases)
def test_every_example_belongs_to_exactly_one_client(name, clients, labels, seed):
    partition = possible(name, clients, labels, 6, seed)
    assert partition.offsets.dtype == partition.indices.dtype == np.int64
    assert partition.offsets[0] == 0
    assert partition.offsets[-1] == len(labels)
    assert (partition.sizes >= 0).all()
    assert np.array_equal(np.sort(partition.indices), np.arange(len(labels)))


@pytest.mark.parametrize("name", OPTIONS)
@settings(max_examples=settings().max_examples // 2)
@given(**cases)
def test_indices_ascend_within_a_client(name, clients, labels, seed):
    partition = possible(name, clients, labels, 6, seed)
    assert all((np.diff(partition.shard(client)) > 0).all() for client in range(partition.clients))


@pytest.mark.parametrize("name", OPTIONS)
@settings(max_examples=settings().max_examples // 2)
@given(**cases)
def test_the_same_stream_gives_the_same_partition(name, clients, labels, seed):
    before = labels.copy()
    first = possible(name, clients, labels, 6, seed)
    assert first.sha256() == split(name, clients, labels, 6, seed).sha256()
    assert np.array_equal(labels, before)


@pytest.mark.parametrize("name", sorted(set(OPTIONS) - {"subject", "central"}))
def test_another_stream_gives_another_partition(name):
    labels = np.arange(600) % 6
    assert split(name, 10, labels, 6, seed=0).sha256() != split(name, 10, labels, 6, seed=1).sha256()
    assert split(name, 10, labels, 6).clients == 10


@pytest.mark.parametrize("name", OPTIONS)
def test_a_class_without_examples_harms_nothing(name):
    partition = split(name, 10, np.arange(90) % 3, 6)
    assert len(partition.indices) == 90


@pytest.mark.parametrize("name", OPTIONS)
def test_labels_are_read_where_that_is_said(name):
    """Other labels give another partition where the federation reads them, and the same where it does not."""
    labels = np.arange(600) % 6
    other = np.random.default_rng(3).permutation(labels)
    same = split(name, 10, labels, 6).sha256() == split(name, 10, other, 6).sha256()
    assert same is not option(name, 10).needs_classes


@pytest.mark.parametrize("name", OPTIONS)
def test_what_clients_see_differs_where_that_is_said(name):
    federation, x = option(name, 3), torch.arange(96, dtype=torch.uint8).view(2, 3, 4, 4)
    seen = [federation.shift_features(x, client, 3, 255.0, np.random.default_rng(0)) for client in range(3)]
    assert all(one.shape == x.shape for one in seen)
    assert all(torch.equal(one, x) for one in seen) is not federation.shifts_features
    assert x.flatten().tolist() == list(range(96))
    groups = federation.groups(3)
    assert groups is None or groups.shape == (3,)
