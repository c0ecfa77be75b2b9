"""Who holds what of a run's data, and sees what of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from worlds import Tiny, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.values import State
from fedexp.parts.dataset.contract import Data
from fedexp.parts.federation.partition import Partition
from fedexp.run.run import run
from fedexp.simulation.build_world import load
from fedexp.simulation.round import run_round
from fedexp.simulation.rounds import run_rounds
from fedexp.simulation.setup import compatibility
from fedexp.simulation.setup.data_split import split_data
from fedexp.simulation.world import World

HELD, UNSEEN = "evaluation.personal_fraction=0.25", "evaluation.unseen_fraction=0.34"


def with_own_tests(config: dict[str, Any]) -> tuple[Any, Data]:
    """An experiment on people, of whom some have test examples."""
    exp = spec.build(config)
    data, _ = load(exp)
    subject = torch.arange(len(data.test.y)) % 6 + 1
    return exp, replace(data, test=replace(data.test, subject=subject))


class TestUnseen:
    def test_they_are_no_clients_and_nobody_trains_on_theirs(self, tiny: Tiny):
        world = world_of(tiny(HELD, UNSEEN))
        assert (world.partition.clients, world.held_out.clients, world.unseen.clients) == (4, 4, 2)
        parts = (world.partition, world.held_out, world.unseen)
        assert sorted(np.concatenate([part.indices for part in parts])) == list(range(120))
        assert world.unseen.sizes.tolist() == [20, 20]
        assert world.held_out.sizes.tolist() == [5] * 4

    def test_the_others_hold_what_they_would_hold_without(self, tiny: Tiny):
        plain, less = (world_of(tiny(HELD, *words)) for words in ((), (UNSEEN,)))
        everyone = {tuple(plain.partition.shard(client)) for client in range(6)}
        assert {tuple(less.partition.shard(client)) for client in range(4)} < everyone

    def test_nothing_to_compare_with_is_refused(self, tiny: Tiny):
        with pytest.raises(
            ConfigError, match=r"evaluation.unseen_fraction compares .*; set evaluation.personal_fraction"
        ):
            spec.build(tiny(UNSEEN))
        exp = spec.build(tiny(UNSEEN, HELD, "scenario.malicious=5"))
        with pytest.raises(ConfigError, match="at most the number of clients, 4, got 5"):
            compatibility.refuse(exp)

    def test_somebody_must_train(self, tiny: Tiny):
        with pytest.raises(ConfigError, match="needs at least two clients, but this federation has 1"):
            world_of(tiny(UNSEEN, HELD, "federation=central"))


class TestOwnTests:
    WORDS = ("federation=subject", "dataset.subjects=4", "evaluation.own_test=true")

    def test_each_client_has_its_own_test_examples(self, tiny: Tiny):
        """People 0 to 3 train; the test data know 1 to 6, of whom 1, 2, 3 are clients."""
        exp, data = with_own_tests(tiny(*self.WORDS))
        division, _ = split_data(exp, data)
        held = [data.test.subject[division.held_out.shard(client)].unique().tolist() for client in range(4)]  # pyright: ignore
        assert held == [[], [1], [2], [3]]
        assert len(division.partition.indices) == 120

    def test_several_people_of_one_client_count_together(self, tiny: Tiny):
        exp, data = with_own_tests(tiny(*self.WORDS, "federation.persons_per_client=2"))
        division, _ = split_data(exp, data)
        for client in range(2):
            trained = set(data.train.subject[division.partition.shard(client)].tolist())  # pyright: ignore
            tested = set(data.test.subject[division.held_out.shard(client)].tolist())  # pyright: ignore
            assert tested == trained - {0}

    def test_clients_that_never_train_have_theirs(self, tiny: Tiny):
        exp, data = with_own_tests(tiny(*self.WORDS, "evaluation.unseen_fraction=0.25"))
        division, _ = split_data(exp, data)
        assert (division.held_out.clients, division.unseen.clients) == (3, 1)
        both = np.concatenate([division.held_out.indices, division.unseen.indices])
        assert sorted(both) == np.flatnonzero((np.arange(60) % 6 + 1) < 4).tolist()

    def test_where_a_subject_is_divided_nobody_has_its_test_examples(self, tiny: Tiny):
        exp, data = with_own_tests(tiny("dataset.subjects=4", "evaluation.own_test=true"))
        with pytest.raises(ConfigError, match=r"federation=iid gives no client any; use federation=subject$"):
            split_data(exp, data)
        exp, data = with_own_tests(tiny(*self.WORDS))
        strangers = replace(data, test=replace(data.test, subject=torch.full((60,), 9)))
        with pytest.raises(ConfigError, match=r"gives no client any; use evaluation.personal_fraction=0.2$"):
            split_data(exp, strangers)

    def test_people_whom_the_federation_does_not_ask_for_are_told(self, tiny: Tiny, caplog: pytest.LogCaptureFixture):
        world_of(tiny("dataset.subjects=4"))
        (line,) = [each.getMessage() for each in caplog.records if "does not ask" in each.getMessage()]
        assert line.startswith("dataset.subjects=4 says whose each example is, but federation=iid does not ask; fed")
        caplog.clear()
        for words in ((), ("federation=subject", "dataset.subjects=4")):
            world_of(tiny(*words))
        assert not any("does not ask" in each.getMessage() for each in caplog.records)

    def test_a_dataset_without_people_is_refused_before_loading(self, tiny: Tiny):
        with pytest.raises(ConfigError, match=r"this one has no subjects; use evaluation.personal_fraction=0.2"):
            compatibility.refuse(spec.build(tiny("evaluation.own_test=true")))
        with pytest.raises(ConfigError, match=r"evaluation.own_test=true .* add evaluation.personal_fraction=0"):
            spec.build(tiny(HELD, "evaluation.own_test=true"))


class TestByClass:
    def test_at_most_one_class_of_a_client_is_on_both_sides(self, tiny: Tiny):
        words = ("federation=shards", "scenario.clients=6", HELD)
        most = {}
        for split in ("random", "by_class"):
            exp = spec.build(tiny(*words, f"evaluation.personal_split={split}"))
            data, _ = load(exp)
            found = split_data(exp, data)[0]
            sides = [(found.partition.shard(client), found.held_out.shard(client)) for client in range(6)]
            shared = [len({*data.train.y[a].tolist()} & {*data.train.y[b].tolist()}) for a, b in sides]
            most[split] = max(shared)
        assert most["by_class"] == 1 < most["random"]

    def test_without_held_out_examples_it_is_refused(self, tiny: Tiny):
        with pytest.raises(ConfigError, match=r"by_class is about .* set evaluation.personal_fraction=0.2"):
            spec.build(tiny("evaluation.personal_split=by_class"))


class TestShifted:
    WORDS = ("dataset.shape=[1,8,8]", HELD, "scenario.public_fraction=0.2")

    def test_clients_see_their_images_rotated_and_the_server_does_not(self, tiny: Tiny):
        plain, world = (world_of(tiny(*self.WORDS, f"federation={name}")) for name in ("iid", "rotation"))
        for client in range(6):
            for part in (world.partition, world.held_out):
                own = torch.from_numpy(part.shard(client))
                turned = torch.rot90(plain.train.inputs(own), client % 4, (2, 3))
                assert torch.equal(world.train.inputs(own), turned)
        theirs = np.concatenate([world.partition.indices, world.held_out.indices])
        public = torch.from_numpy(np.setdiff1d(np.arange(120), theirs))
        assert len(public) == 24
        assert torch.equal(world.train.inputs(public), plain.train.inputs(public))
        assert torch.equal(world.test.x, plain.test.x)
        assert world.groups is not None
        assert world.groups.tolist() == [0, 1, 2, 3, 0, 1]

    def test_the_noise_of_a_client_is_its_own(self, tiny: Tiny):
        """Neither the other clients nor those that never train change it."""
        words = (*self.WORDS, "federation=feature_noise", "federation.sigma=4")
        world, less = world_of(tiny(*words)), world_of(tiny(*words, UNSEEN))
        assert torch.equal(world.train.x, less.train.x)
        plain = world_of(tiny(*self.WORDS))
        spread = [
            float((world.train.x - plain.train.x)[torch.from_numpy(world.partition.shard(k))].std()) for k in range(6)
        ]
        assert spread == pytest.approx([(4 * (k + 1) / 6) ** 0.5 for k in range(6)], rel=0.1)


EVERYTHING = (
    *("federation=feature_noise", "dataset.shape=[1,8,8]", HELD, "evaluation.unseen_fraction=0.25", "engine=stacked"),
    *("scenario.malicious=2", "scenario.malicious_hold_data=false", "attack=label_flip", "scenario.clients=6"),
)


def told(world: World, state: State) -> list[tuple[dict[str, Any], torch.Tensor]]:
    """The columns and the model of each round from a state on."""
    found = []
    for after, row, _ in run_rounds(world.exp, world, state):
        found.append(({name: cell for name, cell in row.items() if not name.endswith("_s")}, after.models[0].flat))
    return found


def test_a_world_that_is_built_again_goes_on_where_the_last_one_stopped(tiny: Tiny):
    """Noise, copies, and who never trains, are drawn again as they were."""
    config = tiny(*EVERYTHING, "rounds=3")
    whole, again = world_of(config), world_of(config)
    assert (whole.partition.clients, whole.unseen.clients) == (5, 1)
    first, *rest = told(whole, whole.initial_state())
    state, *_ = next(run_rounds(whole.exp, whole, whole.initial_state()))
    for (row, model), (other, as_well) in zip(rest, told(again, state), strict=True):
        assert row == other
        assert torch.equal(model, as_well)
    assert first[0]["participation_gap"] is not None


def test_workers_change_nothing(tiny: Tiny, tmp_path: Path):
    for workers in (1, 2):
        run(tiny(*EVERYTHING, f"engine.workers={workers}"), tmp_path / str(workers))
    for name in ("client_scores.csv", "digests.csv", "federation.csv"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    one, two = (pd.read_csv(tmp_path / str(workers) / "metrics.csv") for workers in (1, 2))
    assert one["participation_gap"].tolist() == two["participation_gap"].tolist()


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("federation", ["rotation", "feature_noise"])
def test_engines_agree_on_what_clients_see(tiny: Tiny, federation: str):
    words = (f"federation={federation}", "dataset.shape=[1,8,8]")
    worlds = [world_of(tiny(*words, f"engine={engine}")) for engine in ("loop", "stacked")]
    ends = [run_round(world.exp, world, world.initial_state())[0].models[0].flat for world in worlds]
    assert torch.allclose(*ends, rtol=0, atol=1e-9)


def test_partitions_of_some_clients_and_among_others():
    whole = Partition(np.array([0, 2, 2, 5]), np.array([1, 4, 0, 2, 3]))
    some = whole.of(np.array([1, 2]))
    assert [some.shard(client).tolist() for client in range(2)] == [[], [0, 2, 3]]
    placed = whole.among(5, np.array([0, 3, 4]))
    assert [placed.shard(client).tolist() for client in range(5)] == [[1, 4], [], [], [], [0, 2, 3]]
    assert whole.of(np.arange(3)) is whole


def test_a_federation_in_which_nobody_has_an_example_is_refused(tiny: Tiny):
    """Six clients of 24 examples: what each would get of a class is less than one, and what is left is dropped."""
    words = ("partition=thesis", "dataset.train_size=24", "scenario.clients=6")
    with pytest.raises(
        ConfigError, match=r"federation=shamsian must give an example to some client .* 6 clients of 24 training"
    ):
        world_of(tiny(*words))


@pytest.mark.parametrize(
    "word", ["evaluation.validation=true", "stop=patience", "aggregator=zeno", "selector=greedyfed"]
)
def test_validation_data_of_no_example_are_refused(word: str, tiny: Tiny):
    with pytest.raises(ConfigError, match=r"validation_fraction must leave .* got 0.001 of 120; raise it"):
        world_of(tiny(word, "evaluation.validation_fraction=0.001"))
