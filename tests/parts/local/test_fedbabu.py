"""FedBABU: the head never moves, the body does as under SGD with a frozen head, and clients tune all of it."""

import numpy as np
import pytest
import torch
from plain_training import float_type, plain_pytorch
from torch import nn
from worlds import Tiny, demand_same_rounds, first_round, rounds_with_rows, train_first_round, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.simulation.measures.own_models import personal_models
from fedexp.simulation.setup import compatibility

UNEQUAL = ("federation=dirichlet", "federation.alpha=1", "local.batch_size=8", "model.hidden=[6]")


@pytest.mark.law("local=fedbabu", "a client trains as SGD does under a head that keeps its bytes")
@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_a_client_trains_the_body_under_a_frozen_head(tiny: Tiny, engine: str):
    words = ("local=fedbabu", *UNEQUAL, "local.momentum=0.9", "local.weight_decay=0.1", f"engine={engine}")
    world = world_of(tiny(*words))
    out = train_first_round(world)
    head = world.exp.local.private_columns(world.layout)
    assert len(head) == 6 * 10 + 10
    assert torch.equal(out[:, head], world.first.flat[head].expand(len(out), -1))
    for row, batches in enumerate(first_round(world).batches):
        frozen = [("3.weight", "3.bias")] * batches.steps
        expected = plain_pytorch(world, row, frozen, lr=world.exp.local.lr, momentum=0.9, weight_decay=0.1)
        torch.testing.assert_close(out[row, :-2], expected, atol=1e-9, rtol=0)


def test_a_head_of_normalisation_has_entries_that_never_move_and_statistics_that_do(tiny: Tiny):
    world = world_of(tiny("local=fedbabu", "local.layers=norms", "dataset.shape=[3,8,8]", "model=complex_cnn"))
    out, head = train_first_round(world), world.exp.local.private_columns(world.layout)
    in_head = np.isin(np.arange(world.layout.size), head)
    trainable = np.arange(world.layout.size) < world.layout.parameters
    moved = (out[:, : world.layout.size] != world.first.flat).any(dim=0).numpy()
    assert not moved[in_head & trainable].any()
    assert moved[in_head & ~trainable].all()
    assert moved[~in_head].mean() > 0.5


@pytest.mark.law("local=fedbabu", "the head is the first model's in all rounds, to the byte, and is not sent")
def test_the_global_head_keeps_its_first_bytes_and_is_not_sent(tiny: Tiny):
    world = world_of(tiny("algorithm=fedbabu", "model.hidden=[6]", "rounds=3"))
    head = world.exp.local.private_columns(world.layout)
    for state, row, sent in rounds_with_rows(world):
        assert torch.equal(state.models[0].flat[head], world.first.flat[head])
        assert not sent.delta[:, head].any()
        assert row["mb_up"] == pytest.approx(len(sent.owner) * 4 * (world.layout.size - len(head)) / 1e6)


@pytest.mark.law(
    "local=fedbabu", "a client uses the global model after k epochs of SGD on its own examples, head and body"
)
@pytest.mark.usefixtures("_double")
def test_clients_tune_head_and_body(tiny: Tiny):
    """Two epochs of plain SGD from the global model, on the client's own training examples."""
    words = (
        "algorithm=fedbabu",
        "model.hidden=[6]",
        "rounds=1",
        "local.batch_size=full",
        "evaluation.fine_tune_epochs=2",
    )
    world = world_of(tiny(*words))
    [(state, _, _)] = rounds_with_rows(world)
    tuned = personal_models(world.exp, world, state, np.array([4, 1]))
    for row, client in zip(tuned, (4, 1), strict=True):
        network = world.exp.model.network(world.exp.dataset.facts(world.exp.data_dir))
        network.load_state_dict(world.layout.views(state.models[0].flat.clone()))
        descend, index = torch.optim.SGD(network.parameters(), lr=world.exp.local.lr), world.partition.shard(client)
        for _ in range(2):
            descend.zero_grad()
            outputs = network(world.train.x[index].to(float_type(network)))
            nn.functional.cross_entropy(outputs, world.train.y[index]).backward()
            descend.step()
        torch.testing.assert_close(row, world.layout.flatten(network), atol=1e-9, rtol=0)
    assert len(np.intersect1d(world.partition.shard(4), world.held_out.shard(4))) == 0


@pytest.mark.law("local=fedbabu", "without tuning clients use the global model, to the byte")
def test_without_tuning_clients_use_the_global_model(tiny: Tiny):
    world = world_of(tiny("algorithm=fedbabu", "model.hidden=[6]", "rounds=1", "evaluation.fine_tune_epochs=null"))
    [(state, _, _)] = rounds_with_rows(world)
    assert torch.equal(personal_models(world.exp, world, state, np.array([3]))[0], state.models[0].flat)


@pytest.mark.law("local=fedbabu", "without a head (layers=[]) and without tuning it is FedAvg, to the byte")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_without_head_and_tuning_it_is_fedavg_to_the_byte(tiny: Tiny, engine: str):
    words = (*UNEQUAL, "rounds=3", "local.momentum=0.9", "local.weight_decay=0.1", f"engine={engine}")
    words = (*words, "evaluation.fine_tune_epochs=null", "evaluation.personal_fraction=0.2")
    world, fedavg = world_of(tiny("algorithm=fedbabu", *words, "local.layers=[]")), world_of(tiny("local=sgd", *words))
    compatibility.refuse(world.exp)
    demand_same_rounds(world, fedavg)
    state, clients = [*rounds_with_rows(world)][-1][0], np.array([1, 4])
    assert torch.equal(personal_models(world.exp, world, state, clients), state.models[0].flat.expand(2, -1))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("algorithm=fedavg", "evaluation.fine_tune_epochs=2"),
            r"evaluation\.fine_tune_epochs tunes the models that are measured .* got 2 with",
        ),
        (
            ("local=moon", "evaluation.personal_fraction=0.2", "evaluation.fine_tune_epochs=2"),
            "evaluation.fine_tune_epochs tunes a client's model by the loss of its examples alone, but local=moon",
        ),
    ],
)
def test_refused(tiny: Tiny, words: tuple[str, ...], message: str):
    with pytest.raises(ConfigError, match=message):
        compatibility.refuse(spec.build(tiny(*words)))
