"""Clusters that are divided where their clients pull in different directions."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from worlds import Tiny, rounds_with_rows, uploads_like, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.values import Layout, Memory, Weights
from fedexp.parts.clustering.cfl import CFL, bipartition, cosine_similarities
from fedexp.parts.clustering.contract import Models
from fedexp.parts.context import Context
from fedexp.run.run import run
from fedexp.run.state import checkpoint
from fedexp.run.tables import TIMINGS
from fedexp.simulation.round import run_round
from fedexp.simulation.setup import compatibility

LAYOUT = Layout(("w", "statistic"), ((2,), (1,)), 1)
RIGHT, LEFT, UP = [1.0, 0.0, 7.0], [-1.0, 0.0, 7.0], [0.0, 2.0, 7.0]  # the third entry is a buffer


def at_angles(*degrees: float) -> torch.Tensor:
    angles = torch.tensor(degrees, dtype=torch.float64).deg2rad()
    return torch.stack([angles.cos(), angles.sin()], dim=1)


def context_of(sizes: list[int], number: int = 1) -> Context:
    data = SimpleNamespace(groups=lambda owner: None)
    facts = {"round": number, "clients": len(sizes), "sizes": np.array(sizes), "layout": LAYOUT, "clients_data": data}
    return cast(Context, SimpleNamespace(**facts))


def after_round(
    rule: CFL, rows: list[list[float]], owner: list[int], sizes: list[int], earlier: tuple[Models, Memory] | None = None
) -> tuple[Models, Memory]:
    """The models and the memory after a round in which these clients sent these rows."""
    ctx = context_of(sizes)
    models, memory = earlier or ((Weights(torch.zeros(3), LAYOUT),), {})
    uploads = uploads_like(torch.tensor(rows), owner, np.array(sizes)[owner])
    plan = SimpleNamespace(owner=uploads.owner)
    models, _, number, memory = rule.assign(models, cast(Any, plan), memory, ctx)
    return rule.regroup(models, replace(uploads, model=number), memory, ctx)


def cluster_of(memory: Memory) -> list[int]:
    return memory["cluster"].tolist()


def test_cosines_by_hand():
    rows = torch.tensor([[1.0, 0.0], [3.0, 3.0], [0.0, -2.0], [0.0, 0.0]])
    root = 0.5**0.5
    assert cosine_similarities(rows) == pytest.approx(
        np.array([[1, root, 0, 0], [root, 1, -root, 0], [0, -root, 1, 0], [0, 0, 0, 0]])
    )


def test_the_gap_is_where_the_angle_between_neighbours_is_largest():
    similarity = cosine_similarities(at_angles(0, 30, 61, 93))
    assert bipartition(similarity, "single").tolist() == [False, False, False, True]  # gaps of 30, 31 and 32
    assert bipartition(similarity, "complete").tolist() == [False, False, True, True]
    assert bipartition(np.ones((3, 3)), "single").sum() in (1, 2)


@pytest.mark.law("clustering=cfl", "no other two groups have a smaller largest cosine between them")
@given(st.integers(2, 6), st.integers(0, 2**32))
def test_no_other_two_groups_are_less_alike(clients: int, seed: int):
    rows = torch.from_numpy(np.random.default_rng(seed).normal(size=(clients, 3)))
    similarity = cosine_similarities(rows)
    masks = [np.array((False, *mask)) for mask in product((False, True), repeat=clients - 1) if any(mask)]
    least = min(similarity[mask][:, ~mask].max() for mask in masks)
    mask = bipartition(similarity, "single")
    assert similarity[mask][:, ~mask].max() == pytest.approx(least)


class TestADivision:
    def test_by_hand(self):
        """Of equal weights: the mean is zero, the longest update has length 1. Buffers are neither."""
        rule = CFL(eps1=0.1, eps2=0.9)
        models, memory = after_round(rule, [RIGHT, LEFT, RIGHT, LEFT], [0, 1, 2, 3], [20] * 4)
        assert cluster_of(memory) == [1, 2, 1, 2]
        assert len(models) == 3
        assert all(torch.equal(weights.flat, models[1].flat) for weights in models)
        columns = memory["columns"]
        assert (columns["clusters"], columns["largest"], columns["judged"], columns["messages"]) == (2, 2, 1, 8)
        assert (columns["mean_norm"], columns["max_norm"], columns["similarity"]) == (0, 1, -1)
        moved = [(kind, client, cluster) for _, kind, client, cluster, _ in memory["events"][8:]]
        assert moved == [("birth", 1, 2), ("leave", 1, 1), ("join", 1, 2), ("leave", 3, 1), ("join", 3, 2)]

    @pytest.mark.law(
        "clustering=cfl", "a cluster is divided only if the mean update is below eps1 and the longest one above eps2"
    )
    @pytest.mark.parametrize(("eps1", "eps2", "divides"), [(0.51, 0.9, 1), (0.49, 0.9, 0), (0.51, 1.1, 0)])
    def test_both_thresholds_count(self, eps1: float, eps2: float, divides: int):
        """30 and 10 examples: the mean is (3 - 1) / 4 = 1/2."""
        _, memory = after_round(CFL(eps1=eps1, eps2=eps2), [RIGHT, LEFT], [0, 1], [30, 10])
        assert cluster_of(memory) == [1, 1 + divides]
        assert memory["columns"]["mean_norm"] == pytest.approx(0.5)
        assert memory["columns"]["max_norm"] == 1
        assert (memory["columns"]["similarity"] is None) == (not divides)

    @pytest.mark.law(
        "clustering=cfl", "a cluster is divided only in a round that all of its clients with examples came to"
    )
    def test_a_cluster_is_judged_where_all_of_it_came(self):
        rule = CFL(eps1=9, eps2=0)
        _, memory = after_round(rule, [LEFT, RIGHT], [2, 0], [20, 20, 20])
        assert cluster_of(memory) == [1, 1, 1]
        assert (memory["columns"]["judged"], memory["columns"]["mean_norm"]) == (0, None)
        _, memory = after_round(rule, [LEFT, [torch.nan, 0, 0], RIGHT], [2, 1, 0], [20, 20, 20])
        assert cluster_of(memory) == [1, 1, 1]
        _, memory = after_round(rule, [LEFT, RIGHT], [2, 0], [20, 0, 20])  # one has no examples
        assert cluster_of(memory) == [1, 1, 2]

    def test_halves_are_divided_in_their_turn(self):
        """Clients 0, 2, 3 and 1, 4 at first; then client 3 leaves the first and client 4 the second."""
        rule, sizes = CFL(eps1=9, eps2=0), [20] * 5
        models, memory = after_round(rule, [RIGHT, LEFT, RIGHT, RIGHT, LEFT], [0, 1, 2, 3, 4], sizes)
        assert cluster_of(memory) == [1, 2, 1, 1, 2]
        rows = [RIGHT, LEFT, RIGHT, UP, UP]
        models, memory = after_round(rule, rows, [0, 1, 2, 3, 4], sizes, (models, memory))
        assert cluster_of(memory) == [1, 2, 1, 3, 4]
        assert len(models) == 5
        assert memory["columns"]["judged"] == 2
        models, memory = after_round(rule, rows, [0, 1, 2, 3, 4], sizes, (models, memory))
        assert cluster_of(memory) == [1, 2, 5, 3, 4]  # who is alone stays so


SPENT = ("privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3")
DIVIDED = ("clustering=cfl", "clustering.eps1=inf", "clustering.eps2=0")
GROUPS = ("clustering=cfl", "clustering.eps1=0.3", "clustering.eps2=0.8")


@pytest.mark.parametrize("seed", [0, 1])
def test_three_groups_are_found(live: Any, seed: int):
    """The mean of opposed updates gets shorter from round to round, single ones stay as long as they were."""
    _, _, lines = live(*GROUPS, f"seed={seed}", "rounds=12", "evaluation.personal_fraction=0.2")
    assert lines[0]["clustering.clusters"] == 1
    assert lines[-1]["clustering.agreement"] == 1.0
    assert lines[-1]["clusters.inside"] > lines[0]["clusters.inside"]


@pytest.mark.law("clustering=cfl", "eps1 = 0 is FedAvg, and so is eps2 = infinity, to the byte")
@pytest.mark.parametrize("limit", ["clustering.eps1=0", "clustering.eps2=inf"])
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_at_the_limits_it_is_fedavg_to_the_byte(tiny: Tiny, limit: str, engine: str, tmp_path: Path):
    words = ("selector=all", "rounds=3", "federation=dirichlet", f"engine={engine}", "evaluation.personal_fraction=0.2")
    run(tiny(*words), tmp_path / "plain")
    run(tiny(*words, *DIVIDED, limit), tmp_path / "divided")
    plain, divided = (
        pd.read_csv(tmp_path / name / "metrics.csv", dtype=str, keep_default_na=False).drop(
            columns=list(TIMINGS), errors="ignore"
        )
        for name in ("plain", "divided")
    )
    mine = [name for name in divided if name.startswith(("clustering.", "clusters."))]
    pd.testing.assert_frame_equal(divided.drop(columns=mine), plain)
    assert (tmp_path / "divided" / "clients.csv").read_bytes() == (tmp_path / "plain" / "clients.csv").read_bytes()
    ends = [[*rounds_with_rows(world_of(tiny(*words, *more)))][-1][0] for more in ((), (*DIVIDED, limit))]
    assert all(torch.equal(weights.flat, ends[0].models[0].flat) for weights in ends[1].models)
    assert len(ends[1].models) == 2


def test_engines_agree_and_a_checkpoint_holds_the_clusters(tiny: Tiny, tmp_path: Path):
    ends = []
    for engine in ("loop", "stacked"):
        words = ("clustering=cfl", "clustering.eps1=9", "clustering.eps2=0", "selector=all", "rounds=4")
        world = world_of(tiny(*words, f"engine={engine}", "federation=dirichlet", "federation.alpha=0.3"))
        states = [each for each, *_ in rounds_with_rows(world)]
        assert cluster_of(states[0].memory["clustering"]) != cluster_of(states[-1].memory["clustering"])
        checkpoint.save(tmp_path / engine, states[1], {}, {"name": engine, "reason": ""})
        saved = checkpoint.load(tmp_path / engine, {}, torch.device("cpu"))
        assert saved is not None
        following = run_round(world.exp, world, saved.state)[0]
        assert cluster_of(following.memory["clustering"]) == cluster_of(states[2].memory["clustering"])
        pairs = zip(following.models, states[2].models, strict=True)
        assert all(torch.equal(one.flat, other.flat) for one, other in pairs)
        ends.append(states[-1])
    assert cluster_of(ends[0].memory["clustering"]) == cluster_of(ends[1].memory["clustering"])
    for one, other in zip(ends[0].models, ends[1].models, strict=True):
        torch.testing.assert_close(one.flat, other.flat, rtol=1e-3, atol=1e-4)


def test_what_hides_updates_is_refused(tiny: Tiny):
    with pytest.raises(ConfigError, match="clustering=cfl compares the updates of clients, but aggregator=secure_mean"):
        compatibility.refuse(spec.build(tiny("clustering=cfl", "aggregator=secure_mean")))


@pytest.mark.parametrize("privacy", ["client_local", "dp_sgd"])
def test_it_sees_updates_that_clients_protect(tiny: Tiny, privacy: str):
    words = (f"privacy={privacy}", *SPENT, "clustering=cfl", "clustering.eps1=inf", "clustering.eps2=0")
    world = world_of(tiny(*words, "selector=all"))
    compatibility.refuse(world.exp)
    state = run_round(world.exp, world, world.initial_state())[0]
    assert len(run_round(world.exp, world, state)[0].models) > 2, "these thresholds divide whatever comes"


def test_noise_for_the_mean_of_all_is_too_little_for_a_clusters(tiny: Tiny):
    reason = "privacy=client_central noises the mean of the clipped updates of all participants, but clustering=cfl has"
    with pytest.raises(ConfigError, match=reason):
        compatibility.refuse(
            spec.build(tiny("clustering=cfl", "privacy=client_central", *SPENT, "aggregator.weighting=uniform"))
        )
