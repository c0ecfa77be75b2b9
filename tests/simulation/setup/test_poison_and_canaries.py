"""Malicious clients that hold no share of the data train on copies of a random part of it."""

import numpy as np
import pytest
import torch
from worlds import Tiny, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.simulation.round import run_round
from fedexp.simulation.setup import compatibility

COPIES = ("scenario.clients=5", "scenario.participants=5", "scenario.malicious=2", "scenario.malicious_hold_data=false")


def test_the_honest_hold_all_data_and_a_malicious_client_as_much_as_one_of_them(tiny: Tiny):
    world = world_of(tiny(*COPIES))
    honest = np.setdiff1d(np.arange(5), world.malicious)
    held = np.concatenate([world.partition.shard(client) for client in honest])
    assert sorted(held) == list(range(120))
    assert world.partition.sizes.tolist() == [40] * 5
    assert len(world.train) == 200


def test_copies_are_those_of_different_random_examples(tiny: Tiny):
    world = world_of(tiny(*COPIES))
    rows = world.train.x.flatten(1)
    sources = []
    for client in world.malicious:
        own = torch.from_numpy(world.partition.shard(int(client)))
        same = (rows[own][:, None] == rows[None, :120]).all(dim=2)
        assert (same.sum(dim=1) == 1).all()
        source = same.int().argmax(dim=1)
        assert torch.equal(world.train.y[own], world.train.y[source])
        sources.append(set(source.tolist()))
    assert [len(source) for source in sources] == [40, 40]
    assert sources[0] != sources[1]


def test_an_attack_on_data_poisons_the_copies_alone(tiny: Tiny):
    clean, poisoned = (world_of(tiny(*COPIES, *words)) for words in ((), ("attack=label_flip",)))
    assert torch.equal(clean.train.y[:120], poisoned.train.y[:120])
    assert torch.equal(poisoned.train.y[120:], len(clean.class_names) - 1 - clean.train.y[120:])


@pytest.mark.parametrize("engine", ["loop", "stacked"])
@pytest.mark.parametrize("attack", ["mimic", "alie", "sign_flip", "label_flip"])
def test_what_they_send_counts_like_an_honest_row(tiny: Tiny, attack: str, engine: str):
    world = world_of(tiny(*COPIES, f"attack={attack}", f"engine={engine}"))
    state, row, sent = run_round(world.exp, world, world.initial_state())
    assert sent.examples.tolist() == [40] * 5
    assert row["attack.malicious"] == 2
    assert state.models[0].flat.isfinite().all()


@pytest.mark.usefixtures("_double")
def test_engines_agree(tiny: Tiny):
    words = (*COPIES, "attack=label_flip")
    one, other = (world_of(tiny(*words, f"engine={engine}")) for engine in ("loop", "stacked"))
    ends = [run_round(world.exp, world, world.initial_state())[0].models[0].flat for world in (one, other)]
    assert torch.allclose(*ends, rtol=0, atol=1e-9)


def test_what_is_held_out_belongs_to_the_honest(tiny: Tiny):
    world = world_of(tiny(*COPIES, "evaluation.personal_fraction=0.25"))
    honest = np.setdiff1d(np.arange(5), world.malicious)
    assert world.held_out.sizes[honest].tolist() == [10] * 3
    assert world.held_out.sizes[world.malicious].tolist() == [0, 0]
    assert world.partition.sizes.tolist() == [30] * 5
    copied = world.train.x[120:].flatten(1)
    held = world.train.x[torch.from_numpy(world.held_out.indices)].flatten(1)
    assert not (copied[:, None] == held[None]).all(dim=2).any()


def test_without_malicious_clients_the_setting_changes_nothing(tiny: Tiny):
    plain, other = (world_of(tiny(*words)) for words in ((), ("scenario.malicious_hold_data=false",)))
    assert plain.partition.sha256() == other.partition.sha256()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("scenario.malicious=5",), "must leave an honest client to hold the data .*got 5 of 5 clients"),
        (("federation=central",), "divides all data over the honest clients, but federation=central makes"),
        (("federation=dirichlet", "federation.min_size=41"), "min_size=41 for 3 clients needs 123 examples"),
    ],
)
def test_what_cannot_be_is_refused_before_loading(tiny: Tiny, words: tuple[str, ...], told: str):
    with pytest.raises(ConfigError, match=told):
        compatibility.refuse(spec.build(tiny(*COPIES, *words)))
