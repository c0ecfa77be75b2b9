"""pFedMe: a batch by hand, its limits, a client's training in plain PyTorch, both engines."""

import numpy as np
import pytest
import torch
from torch import nn
from worlds import Tiny, first_round, rounds_with_rows, train_first_round, world_of

from fedexp.parts.local.pfedme import PFedMe
from fedexp.parts.local.sgd import SGD
from fedexp.simulation.measures.own_models import personal_models

WORDS = ("model.hidden=[6]", "local.batch_size=8", "federation=dirichlet", "federation.alpha=1")


def test_a_batch_by_hand():
    """F = theta^2, w = 1, theta_lr 0.25, lam 1: theta = 1 - 0.5 = 0.5, then 0.5 - 0.25 (1 - 0.5) = 0.375.

    With lr = 0.4: w = 1 - 0.4 (1 - 0.375) = 0.75, from where the next batch begins.
    """
    rule, row, slots = PFedMe(lr=0.4, theta_lr=0.25, lam=1.0, inner_steps=2), torch.ones(1), torch.zeros(2, 1)
    rule.fill(slots, row)
    seen = []
    for step in (1.0, 2.0, 3.0):
        rule.update(row, 2 * row, slots, torch.tensor(step), None)
        seen.append((row.item(), slots[1].item()))
    assert seen[0] == (pytest.approx(0.5), 1.0)
    assert seen[1] == (pytest.approx(0.75), pytest.approx(0.375))
    assert seen[2] == (pytest.approx(0.75 - 0.25 * 1.5), pytest.approx(0.375))


def test_a_row_that_is_done_stays():
    rule, rows, slots = PFedMe(inner_steps=1), torch.ones(2, 1), torch.zeros(2, 2, 1)
    rule.fill(slots, rows)
    rule.update(rows, 2 * rows, slots, torch.tensor(1.0), torch.tensor([[1.0], [0.0]]))
    assert rows[1].item() == slots[0, 1].item() == slots[1, 1].item() == 1
    assert rows[0].item() < 1


@pytest.mark.law("local=pfedme", "one inner step is SGD at the rate lr times lambda times theta_lr")
@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_one_inner_step_is_sgd_at_the_product_of_the_rates(tiny: Tiny, engine: str):
    words = (*WORDS, f"engine={engine}")
    rates = ("local.lr=0.02", "local.lam=10", "local.theta_lr=0.5", "local.inner_steps=1")
    ours = train_first_round(world_of(tiny("local=pfedme", *rates, *words)))
    sgd = world_of(tiny("local=sgd", "local.lr=0.1", *words))
    torch.testing.assert_close(ours[:, : sgd.layout.size], train_first_round(sgd)[:, :-2], atol=1e-14, rtol=0)


@pytest.mark.law(
    "local=pfedme", "one inner step is SGD at the rate lr times lambda times theta_lr, to the byte if nothing rounds"
)
def test_one_inner_step_is_sgd_to_the_byte_where_nothing_rounds():
    """Entries and gradients are whole numbers, rates powers of 2; w moves by w - theta, which rounds else."""
    rng = np.random.default_rng(0)
    start, *grads = (torch.from_numpy(rng.integers(-8, 9, (4, 5))).float() for _ in range(4))
    ours, plain, slots = start.clone(), start.clone(), torch.zeros(2, 4, 5)
    pfedme, sgd = PFedMe(lr=0.25, lam=2.0, theta_lr=0.125, inner_steps=1), SGD(lr=0.0625)
    pfedme.fill(slots, start)
    for number, grad in enumerate(grads):
        pfedme.update(ours, grad, slots, torch.tensor(number + 1.0), None)
        sgd.update(plain, grad, torch.zeros(0, 4, 5), torch.tensor(number + 1.0), None)
        assert torch.equal(ours, plain)
    assert not torch.equal(plain, start)


@pytest.mark.law("local=pfedme", "lambda = 0: what is sent stays at the received model, to the byte")
@pytest.mark.law("local=pfedme", "lambda = 0: a client uses what SGD comes to at the rate theta_lr, to the byte")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_without_a_bond_the_sent_model_stays(tiny: Tiny, engine: str):
    words = ("model.hidden=[6]", "local.batch_size=full", "local.order=file", f"engine={engine}")
    rates = ("local.lam=0", "local.theta_lr=0.3", "local.lr=7", "local.inner_steps=4")
    world, sgd = world_of(tiny("local=pfedme", *rates, *words)), world_of(tiny("local=sgd", "local.lr=0.3", *words))
    out, size = train_first_round(world), world.layout.size
    assert torch.equal(out[:, :size], world.first.flat.expand(len(out), -1))
    epochs = world_of(tiny("local=sgd", "local.lr=0.3", "local.epochs=4", *words))
    assert torch.equal(out[:, size : 2 * size], train_first_round(epochs)[:, :-2])
    assert not torch.equal(out[:, size : 2 * size], train_first_round(sgd)[:, :-2])
    *_, (state, _, sent) = rounds_with_rows(world)
    assert torch.equal(state.models[0].flat, world.first.flat)
    assert not sent.delta.any()


@pytest.mark.usefixtures("_double")
def test_a_client_does_what_plain_pytorch_does_on_both_engines(tiny: Tiny):
    words = ("local=pfedme", "local.lam=2", "local.lr=0.3", "local.epochs=2", "local.inner_steps=3", *WORDS)
    one, other = (train_first_round(world_of(tiny(*words, f"engine={engine}"))) for engine in ("loop", "stacked"))
    torch.testing.assert_close(one, other, atol=1e-9, rtol=0, equal_nan=True)
    world = world_of(tiny(*words))
    task = first_round(world)
    for row, shard in enumerate(task.plan.shards):
        w = world.first.flat.double()
        network, theta = world.exp.model.network(world.exp.dataset.facts(world.exp.data_dir)).double(), w
        batches = task.batches[row]
        assert np.array_equal(batches.counts[::3], batches.counts[2::3])
        for a, b in zip(batches.bounds[:-1:3], batches.bounds[1::3], strict=True):
            index, theta = torch.from_numpy(shard[batches.order[a:b]]), w.clone()
            for _ in range(3):
                network.load_state_dict(world.layout.views(theta))
                loss = nn.functional.cross_entropy(network(world.train.x[index].double()), world.train.y[index])
                grads = torch.autograd.grad(loss, list(network.parameters()))
                theta = theta - 0.1 * (torch.cat([grad.reshape(-1) for grad in grads]) + 2 * (theta - w))
            w = w - 0.3 * 2 * (w - theta)
        torch.testing.assert_close(one[row, : len(w)], w, atol=1e-9, rtol=0)
        torch.testing.assert_close(one[row, len(w) : 2 * len(w)], theta, atol=1e-9, rtol=0)


def test_each_batch_is_trained_on_several_times_in_a_row(tiny: Tiny):
    world = world_of(tiny("local=pfedme", "local.inner_steps=3", "rounds=1", "scenario.participants=2", *WORDS[:2]))
    [(state, _, sent)] = rounds_with_rows(world)
    models = personal_models(world.exp, world, state, np.arange(6))
    stranger = next(client for client in range(6) if client not in sent.owner)
    assert torch.equal(models[stranger], state.models[0].flat)
    kept = state.memory["local"]
    assert torch.equal(models[kept["owner"]], kept["rows"])
    assert not torch.equal(models[sent.owner[0]], state.models[0].flat)
