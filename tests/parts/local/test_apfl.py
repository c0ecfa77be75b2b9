"""APFL: a step by hand, its limits, a client's training in plain PyTorch on both engines, the weight that learns."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from pairs import own_models, train_pairs
from plain_training import AUTOGRAD_SGD
from torch import nn
from torch.func import functional_call
from worlds import Tiny, demand_same_rounds, first_round, rounds_with_rows, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.values import Layout
from fedexp.parts.local.apfl import APFLCompanion
from fedexp.simulation.round import run_round
from fedexp.simulation.setup import compatibility

ENGINES = pytest.mark.parametrize("engine", ["loop", "stacked"])
WORDS = ("model.hidden=[6]", "local.epochs=2", "rounds=2")


def test_the_mixture_by_hand():
    """alpha = 0.25, v = (4, 8), w = (0, 4): u = (1, 5)."""
    layout = Layout(("a",), ((2,),), 1)
    private, shared = torch.tensor([0.25, 4.0, 8.0]), torch.tensor([0.0, 4.0])
    assert APFLCompanion().combine(private, shared, layout).tolist() == [1.0, 5.0]
    assert APFLCompanion(alpha=0.5).first_private(shared, layout).tolist() == [0.5, 0.0, 4.0]


@pytest.mark.law("local=apfl", "alpha moves only if it learns, and never beyond 1")
def test_the_weight_moves_only_if_it_learns_and_stays_a_share():
    row, grad = torch.tensor([[0.9, 1.0], [0.9, 1.0]]), torch.full((2, 2), -2.0)
    for learns, expected in ((False, [0.9, 0.9]), (True, [1.0, 0.9])):
        rows = row.clone()
        rule = APFLCompanion(lr=0.1, learn_alpha=learns)
        rule.update(rows, grad, torch.zeros(0, 2, 2), torch.tensor(1.0), torch.tensor([[1.0], [0.0]]))
        assert rows[:, 0].tolist() == pytest.approx(expected)
        assert rows[:, 1].tolist() == pytest.approx([1.2, 1.0])


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_a_client_does_what_plain_pytorch_does(tiny: Tiny, engine: str):
    words = ("local=apfl", "local.alpha=0.3", "local.learn_alpha=true", *WORDS, "local.batch_size=8")
    world = world_of(tiny(*words, "local.lr=0.5", f"engine={engine}"))
    out, _ = train_pairs(world)
    network = world.exp.model.network(world.exp.dataset.facts(world.exp.data_dir)).double()
    task, lr = first_round(world), 0.5

    def slope(row: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        entries = {name: view.clone().requires_grad_() for name, view in world.layout.views(row).items()}
        answers = functional_call(network, entries, (world.train.x[index].double(),))
        loss = nn.functional.cross_entropy(answers, world.train.y[index])
        return torch.cat([grad.reshape(-1) for grad in torch.autograd.grad(loss, list(entries.values()))])

    for row, (shard, batches) in enumerate(zip(task.plan.shards, task.batches, strict=True)):
        w, v, alpha = world.first.flat.double(), world.first.flat.double(), 0.3
        for a, b in zip(batches.bounds[:-1], batches.bounds[1:], strict=True):
            index = torch.from_numpy(shard[batches.order[a:b]])
            at_w, at_u = slope(w, index), slope(alpha * v + (1 - alpha) * w, index)
            moved = alpha - lr * float((v - w) @ at_u)
            w, v, alpha = w - lr * at_w, v - lr * alpha * at_u, min(1.0, max(0.0, moved))
        torch.testing.assert_close(out[row], torch.cat([torch.tensor([alpha]).double(), v, w]), atol=1e-9, rtol=0)


@pytest.mark.law("local=apfl", "the global models are FedAvg's for every alpha, to the byte")
@ENGINES
@pytest.mark.parametrize("alpha", ["0", "0.3"])
def test_the_global_path_is_fedavgs_to_the_byte(tiny: Tiny, engine: str, alpha: str):
    words = (*WORDS, "local.momentum=0.9", f"engine={engine}")
    apfl = world_of(tiny("local=apfl", f"local.alpha={alpha}", *words))
    demand_same_rounds(apfl, world_of(tiny("local=sgd", *words)))


@pytest.mark.law(
    "local=apfl",
    "alpha = 0: a client's own model is the one that it trained for FedAvg, to the byte where autograd takes both "
    "gradients",
)
@ENGINES
def test_at_0_a_client_uses_what_it_trained_for_fedavg_to_the_byte(tiny: Tiny, engine: str):
    """Each round begins from the same model: FedAvg's own path through autograd rounds otherwise."""
    words = (*WORDS, "selector=all", "local.momentum=0.9", f"engine={engine}")
    apfl, fedavg = (world_of(tiny(*rule, *words)) for rule in (("local=apfl", "local.alpha=0"), AUTOGRAD_SGD))
    state, plain = apfl.initial_state(), fedavg.initial_state()
    for _ in range(2):
        received = state.models[0].flat
        _, _, sent = run_round(fedavg.exp, fedavg, replace(plain, round=state.round, models=state.models))
        state, _, _ = run_round(apfl.exp, apfl, state)
        assert torch.equal(own_models(apfl, state) - received, sent.delta[np.argsort(sent.owner)])


@ENGINES
def test_at_0_a_client_uses_what_it_trained_whichever_formula_gives_the_gradient(tiny: Tiny, engine: str):
    words = (*WORDS, "selector=all", f"engine={engine}")
    apfl, fedavg = (world_of(tiny(*rule, *words)) for rule in (("local=apfl", "local.alpha=0"), ("local=sgd",)))
    before = fedavg.first.flat
    for (ours, _, _), (theirs, _, sent) in zip(rounds_with_rows(apfl), rounds_with_rows(fedavg), strict=True):
        trained = (before + sent.delta)[np.argsort(sent.owner)]
        torch.testing.assert_close(own_models(apfl, ours), trained, atol=1e-5, rtol=1e-4)
        before = theirs.models[0].flat


@pytest.mark.law("local=apfl", "alpha = 1 is training alone, to the byte where autograd takes both gradients")
@ENGINES
def test_at_1_clients_train_alone_to_the_byte(tiny: Tiny, engine: str):
    words = (*WORDS, "selector=all", "local.momentum=0.9", "evaluation.personal_fraction=0.3", f"engine={engine}")
    apfl = world_of(tiny("local=apfl", "local.alpha=1", *words))
    for rule, tolerance in ((AUTOGRAD_SGD, 0.0), (("local=sgd",), 1e-5)):
        alone = world_of(tiny(*rule, "scenario.training=local", *words))
        for (ours, _, _), (theirs, _, _) in zip(rounds_with_rows(apfl), rounds_with_rows(alone), strict=True):
            expected = own_models(alone, theirs)
            torch.testing.assert_close(own_models(apfl, ours), expected, atol=tolerance, rtol=10 * tolerance)


def test_what_is_kept_comes_back_and_goes_on(tiny: Tiny):
    world = world_of(tiny("local=apfl", "local.learn_alpha=true", *WORDS, "rounds=3", "selector=all"))
    kept: list[Any] = [state.memory["companion"]["rows"] for state, _, _ in rounds_with_rows(world)]
    size = world.layout.size
    assert kept[0].shape == (6, 1 + 2 * size)
    assert (kept[1][:, 0] != kept[0][:, 0]).all()
    assert (kept[1][:, 1:] != kept[0][:, 1:]).any(dim=1).all()


def test_networks_with_statistics_are_refused(tiny: Tiny):
    words = ("local=apfl", "model=complex_cnn", "dataset.shape=[1,8,8]")
    with pytest.raises(ConfigError, match="local=apfl asks a network twice in each step, but model=complex_cnn"):
        compatibility.refuse(spec.build(tiny(*words)))
    compatibility.refuse(spec.build(tiny(*words, "model.norm=group")))


def test_clipped_gradients_are_refused_and_the_weight_does_not_decay(tiny: Tiny):
    with pytest.raises(ConfigError, match=r"local\.clip_norm=1 would shorten the gradients of both models"):
        compatibility.refuse(spec.build(tiny("local=apfl", "local.clip_norm=1")))
    row = torch.tensor([[0.5, 4.0]])
    assert APFLCompanion(weight_decay=0.5).direction(torch.zeros(1, 2), row, row).tolist() == [[0.0, 2.0]]
