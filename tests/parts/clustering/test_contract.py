"""What every option of clustering must keep, found from conf/, and what it refuses."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from groups import GROUPED
from worlds import world_of

from fedexp.config.location import conf_dir
from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.values import Layout, Memory, Plan, State, Weights
from fedexp.parts.clustering.contract import mean_of_clusters
from fedexp.parts.context import Context
from fedexp.run.state import checkpoint
from fedexp.simulation import context
from fedexp.simulation.round import run_round
from fedexp.simulation.setup import compatibility
from fedexp.simulation.world import World

Tiny = Callable[..., dict[str, Any]]
CLUSTERINGS = sorted(path.stem for path in (conf_dir() / "clustering").glob("*.yaml"))
DIVIDING = [name for name in CLUSTERINGS if name != "none"]
QUEUED = ("kmeans_updates", "output_similarity")
SPENT = ("privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3")
PUBLIC = "scenario.public_fraction=0.2"
SHARED = {"clusters", "largest", "messages", "mb", "agreement"}


def after(world: World, rounds: int) -> tuple[State, list[dict[str, Any]]]:
    state, lines = world.initial_state(), []
    for _ in range(rounds):
        state, row, _ = run_round(world.exp, world, state)
        lines.append(row)
    return state, lines


@pytest.fixture(params=CLUSTERINGS)
def world(request: pytest.FixtureRequest, tiny: Tiny) -> World:
    late = ("clustering.arrivals=[2:3]",) if request.param in QUEUED else ()
    few = ("dataset.train_size=450", "model.hidden=[6]", "rounds=4")
    return world_of(tiny(*GROUPED, f"clustering={request.param}", *few, *late))


def assigned(world: World, owner: list[int], state: State) -> tuple[Any, Plan, np.ndarray, Memory, Context]:
    ctx = context.make_context(world, state.round + 1, state.models)
    memory = {name: value for name, value in state.memory.get("clustering", {}).items() if name != "columns"}
    plan = ctx.plan(np.array(owner, dtype=np.int64))
    return *world.exp.clustering.assign(state.models, plan, memory, ctx), ctx


class TestClustering:
    def test_participants_are_proposed_and_have_a_model(self, world: World):
        state, _ = after(world, 1)
        for owner in ([0, 4, 7, 11], [3], []):
            models, plan, model, memory, _ = assigned(world, owner, state)
            assert set(plan.owner.tolist()) <= set(owner)
            assert model.shape == plan.owner.shape
            assert model.dtype == np.int64
            low = int(world.exp.clustering.has_clusters)
            assert ((low <= model) & (model < len(models))).all()
            assert world.exp.clustering.model_of(plan.owner, memory).tolist() == model.tolist()

    @pytest.mark.law("clustering", "the order of the proposed clients does not matter")
    def test_the_order_of_the_proposed_does_not_matter(self, world: World):
        state, _ = after(world, 1)
        straight, turned = (assigned(world, owner, state) for owner in ([1, 5, 8, 9], [9, 1, 8, 5]))
        one, other = (
            dict(zip(plan.owner.tolist(), model.tolist(), strict=True)) for _, plan, model, *_ in (straight, turned)
        )
        assert one == other
        assert turned[1].owner.tolist() == [client for client in (9, 1, 8, 5) if client in one]

    def test_inputs_are_not_written(self, world: World):
        state, _ = after(world, 1)
        kept = copy.deepcopy(state)
        run_round(world.exp, world, state)
        assert all(torch.equal(a.flat, b.flat) for a, b in zip(state.models, kept.models, strict=True))
        same(state.memory["clustering"], kept.memory["clustering"])

    def test_a_round_in_which_nobody_takes_part(self, world: World):
        state, lines = after(world, 1)
        models, plan, _, memory, ctx = assigned(world, [], state)
        sent = run_round(world.exp, world, state)[2].where(np.zeros(0, dtype=np.int64))
        models, memory = world.exp.clustering.regroup(models, sent, memory, ctx)
        assert len(plan.owner) == 0
        assert {f"clustering.{name}" for name in memory.get("columns", {})} == {
            name for name in lines[0] if name.startswith("clustering.")
        }

    def test_the_same_columns_in_every_round(self, world: World):
        _, lines = after(world, 4)
        names = [[name for name in line if name.startswith("clustering.")] for line in lines]
        assert names == names[:1] * 4
        assert {name.partition(".")[2] for name in names[0]} >= SHARED or not world.exp.clustering.has_clusters
        assert all(type(line[name]) in (int, float, type(None)) for line in lines for name in names[0])

    @pytest.mark.parametrize("rounds", [1, 2, 3])
    def test_a_checkpoint_holds_all_of_it(self, world: World, rounds: int, tmp_path: Path):
        """After round 2 three clients wait."""
        state, _ = after(world, rounds)
        checkpoint.save(tmp_path, state, {}, {"name": "loop", "reason": ""})
        loaded = checkpoint.load(tmp_path, {}, torch.device("cpu"))
        assert loaded is not None
        again = loaded.state
        same(again.memory.get("clustering", {}), state.memory.get("clustering", {}))
        (one, row, _), (other, line, _) = (run_round(world.exp, world, each) for each in (state, again))
        assert all(torch.equal(a.flat, b.flat) for a, b in zip(one.models, other.models, strict=True))
        same(one.memory.get("clustering", {}), other.memory.get("clustering", {}))
        assert {name: value for name, value in row.items() if not name.endswith("_s")} == {
            name: value for name, value in line.items() if not name.endswith("_s")
        }


def same(one: Any, other: Any) -> None:
    """Raises where two memories differ."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            same(one[name], other[name])
    elif isinstance(one, torch.Tensor):
        assert torch.equal(one, other)
        assert one.dtype == other.dtype
    else:
        assert one == other


def complaint(config: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as told:
        compatibility.refuse(spec.build(config))
    assert "\n" not in str(told.value)
    return str(told.value)


@pytest.mark.parametrize("name", DIVIDING)
class TestRefusals:
    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("evaluation.local_models=true",), "evaluation.local_models follows one global model, but "),
            (("aggregator=pfnm",), "averages and compares models of one shape, but aggregator=pfnm changes"),
            (("aggregator=fedplus_centre",), "aggregator=fedplus_centre has one global model for all clients that"),
            (("selector=greedyfed",), "selector=greedyfed averages uploads with one global model, but "),
            (("selector=afl",), "selector=afl compares the clients' losses under one global model, but "),
            (("selector=power_of_choice",), "selector=power_of_choice compares the clients' losses"),
            (("selector=oort",), "selector=oort compares the clients' losses"),
            (("selector=hybridfl", "fleet=simulated"), "selector=hybridfl has the server train the global model"),
            (
                ("audit=canaries", "audit.score=uploads"),
                "audit=canaries with audit.score=uploads compares what is sent",
            ),
        ],
    )
    def test_what_counts_on_one_model(self, tiny: Tiny, name: str, words: tuple[str, ...], message: str):
        told = complaint(tiny(f"clustering={name}", PUBLIC, *words))
        assert message in told
        assert f"clustering={name}" in told
        assert "; use " in told

    def test_privacy_covers_what_is_learnt_of_clients(self, tiny: Tiny, name: str):
        config = tiny(f"clustering={name}", PUBLIC, "privacy=dp_sgd", *SPENT)
        if spec.build(config).clustering.reveals:
            assert f"privacy=dp_sgd covers what is trained, but clustering={name} learns " in complaint(config)
        else:
            compatibility.refuse(spec.build(config))

    def test_what_goes_together(self, tiny: Tiny, name: str):
        for words in ((), ("audit=canaries", "audit.score=loss"), ("selector=fedcs", "fleet=simulated")):
            compatibility.refuse(spec.build(tiny(f"clustering={name}", PUBLIC, *words)))


def test_answers_need_public_data(tiny: Tiny):
    told = complaint(tiny("clustering=output_similarity"))
    assert told.startswith(
        "clustering=output_similarity needs public data of the server, but the server has none; use scenario"
    )
    for name in ("kmeans_updates", "ifca", "none"):
        compatibility.refuse(spec.build(tiny(f"clustering={name}")))


@pytest.mark.parametrize("name", QUEUED)
def test_arrivals_that_cannot_be(tiny: Tiny, name: str):
    told = complaint(tiny(f"clustering={name}", PUBLIC, "clustering.arrivals=[2:4,3:3]"))
    assert told == "clustering.arrivals must name at most the number of clients, 6, got 7; name fewer"
    told = complaint(tiny(f"clustering={name}", PUBLIC, "clustering.arrivals=[2:4]", "clustering.rate=1"))
    assert told == "clustering.arrivals must be [] where there is a rate of them, got ['2:4']; leave one out"
    assert "ROUND:COUNT" in complaint(tiny(f"clustering={name}", PUBLIC, "clustering.arrivals=[two]"))


def test_groups_of_the_first_cannot_be_made_of_one(tiny: Tiny):
    assert "clustering.rate must be 0, because groups are made of those" in complaint(
        tiny("clustering=kmeans_updates", "clustering.rate=1")
    )


def test_runs_of_before_it_was_there_are_like_none(tiny: Tiny):
    old = tiny()
    del old["clustering"]
    assert spec.build(old) == spec.build(tiny("clustering=none"))


LAYOUT = Layout(("w",), ((2,),), 1)


MODELS = tuple(Weights(torch.tensor(row), LAYOUT) for row in ([7.0, 7.0], [1.0, 10.0], [4.0, -2.0]))


def test_the_mean_of_the_clusters_by_their_examples():
    assert mean_of_clusters(MODELS, np.array([10, 30])).flat.tolist() == [3.25, 1.0]
    assert mean_of_clusters(MODELS, np.array([10, 0])).flat.tolist() == [1.0, 10.0]


def test_without_examples_the_global_model_stays():
    assert mean_of_clusters(MODELS, np.array([0, 0])) is MODELS[0]
    assert mean_of_clusters(MODELS[:1], np.zeros(0)) is MODELS[0]


@pytest.mark.law("clustering", "the global model of one cluster is the cluster's, to the byte")
def test_the_mean_of_one_is_its_every_bit():
    row = torch.randn(2, generator=torch.Generator().manual_seed(0)) / 3
    alone = (MODELS[0], Weights(row, LAYOUT))
    assert torch.equal(mean_of_clusters(alone, np.array([17.0])).flat, row)
