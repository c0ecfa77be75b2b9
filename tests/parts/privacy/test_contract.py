"""What every privacy must keep, found from conf/."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from worlds import uploads_like

from fedexp.config.location import conf_dir
from fedexp.core import part as spec
from fedexp.core.values import Uploads
from fedexp.simulation import context
from fedexp.simulation.build_world import build_world
from fedexp.simulation.setup import compatibility
from fedexp.simulation.world import World
from fedexp.training.workers.pool import WorkerPool

Tiny = Callable[..., dict[str, Any]]
SPENT = ("privacy.clip=0.5", "privacy.noise_multiplier=1", "privacy.delta=1e-3", "aggregator.weighting=uniform")


@pytest.fixture(params=sorted(path.stem for path in (conf_dir() / "privacy").glob("*.yaml")))
def world(request: pytest.FixtureRequest, tiny: Tiny) -> World:
    spent = () if request.param == "none" else SPENT
    exp = spec.build(tiny(f"privacy={request.param}", *spent))
    compatibility.refuse(exp)
    return build_world(exp, None, WorkerPool())


def protected(world: World, uploads: Uploads, memory: dict[str, Any] | None = None) -> tuple[Uploads, dict[str, Any]]:
    ctx = context.make_context(world, 1)
    memory = world.exp.privacy.spend(uploads.owner, np.full(len(uploads.owner), 2), memory or {}, ctx)
    return world.exp.privacy.protect(uploads, memory, ctx)


@pytest.mark.law("privacy", "the order of clients does not matter, to the byte")
def test_order_of_clients_does_not_matter(world: World):
    delta, order = torch.randn(4, world.layout.size), [2, 0, 3, 1]
    straight, one = protected(world, uploads_like(delta, [0, 1, 4, 5]))
    turned, other = protected(world, uploads_like(delta[order], [4, 0, 5, 1]))
    assert turned.owner.tolist() == [4, 0, 5, 1]
    assert torch.equal(straight.delta[order], turned.delta)
    assert one.get("columns") == other.get("columns")


def test_inputs_are_not_written(world: World):
    delta = torch.randn(3, world.layout.size)
    kept, memory = delta.clone(), protected(world, uploads_like(delta, [0, 1, 2]))[1]
    before = copy.deepcopy(memory)
    protected(world, uploads_like(delta, [2, 3, 4]), memory)
    assert torch.equal(delta, kept)
    assert str(memory) == str(before)


@pytest.mark.law("privacy", "clients of whom nothing came are charged nothing, but where noise is on the mean")
def test_nobody_is_charged_nothing(world: World):
    sent, memory = protected(world, uploads_like(torch.zeros(0, world.layout.size), []))
    assert len(sent.owner) == 0
    said = world.exp.privacy.client_columns(np.arange(6), memory, context.make_context(world, 1))
    if not world.exp.privacy.noises_mean:  # a trusted server spends by the round, whoever came
        assert all((column == 0).all() for column in said.values())


def test_whoever_promises_keeps_a_ledger(world: World):
    privacy = world.exp.privacy
    _, memory = protected(world, uploads_like(torch.randn(2, world.layout.size), [1, 3]))
    said = privacy.client_columns(np.array([1, 3]), memory, context.make_context(world, 1))
    assert bool(said) == privacy.guarantees == (privacy.promise() is not None)
    if privacy.guarantees:
        columns = memory["columns"]
        assert {"epsilon_rdp", "epsilon_pld", "epsilon_next", "noise_multiplier"} <= set(columns)
        assert max(said["epsilon_rdp"]) == columns["epsilon_rdp"] > 0
        assert max(said["epsilon_pld"]) == columns["epsilon_pld"] > 0
        assert columns["epsilon_next"] > columns["epsilon_pld"]


@pytest.mark.law("privacy", "without noise epsilon is infinite")
def test_without_noise_nothing_is_promised(world: World):
    privacy = world.exp.privacy
    if privacy.guarantees:
        silent = replace(world, exp=replace(world.exp, privacy=replace(privacy, noise_multiplier=0.0)))
        _, memory = protected(silent, uploads_like(torch.randn(2, world.layout.size), [1, 3]))
        assert memory["columns"]["epsilon_pld"] == np.inf


@pytest.mark.law("privacy", "epsilon never falls from round to round")
def test_more_is_never_cheaper(world: World):
    memory: dict[str, Any] = {}
    spent = [0.0]
    for _ in range(3):
        _, memory = protected(world, uploads_like(torch.randn(2, world.layout.size), [1, 3]), memory)
        spent.append(memory.get("columns", {}).get("epsilon_pld", 0.0))
    assert spent == sorted(spent)
