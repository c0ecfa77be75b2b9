"""Layers that stay with their client: what is sent, what is kept, three rounds by hand, who can learn what."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from worlds import demand_same_rounds, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.values import Layout, State, Uploads
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.local.personal_layer import PersonalLayer, batch_norm_names, last_linear_names
from fedexp.parts.model.contract import Model
from fedexp.run.state import checkpoint
from fedexp.simulation import context
from fedexp.simulation.measures import own_models as personal
from fedexp.simulation.measures import participants as local_models
from fedexp.simulation.personal_columns import personal_columns
from fedexp.simulation.round import run_round
from fedexp.simulation.rounds import run_rounds
from fedexp.simulation.setup import compatibility
from fedexp.simulation.world import World

Tiny = Callable[..., dict[str, Any]]
SMALL = ("local=personal_layer", "model.hidden=[5]")
SPENT = ("privacy.clip=1", "privacy.noise_multiplier=1", "privacy.delta=1e-3")


def lived(world: World, count: int) -> list[tuple[State, dict[str, Any], Uploads]]:
    """The states, rows and uploads of so many rounds."""
    state, found = world.initial_state(), []
    for _ in range(count):
        found.append(run_round(world.exp, world, state))
        state = found[-1][0]
    return found


def own(state: State) -> dict[int, torch.Tensor]:
    """What the clients keep, by their numbers."""
    held = state.memory["personal"]
    return dict(zip(held["owner"].tolist(), held["rows"], strict=True))


def columns(world: World) -> torch.Tensor:
    return torch.from_numpy(world.exp.local.private_columns(world.layout))


def test_the_last_linear_layer_by_its_shapes():
    names = ("0.weight", "0.bias", "1.weight", "3.weight", "4.weight", "4.bias", "4.running_mean")
    layout = Layout(names, ((2, 3), (2,), (4, 3, 3), (3, 2), (3,), (3,), (3,)), 6)
    assert last_linear_names(layout) == ("3.weight",)
    assert layout.columns(last_linear_names(layout)).tolist() == list(range(44, 50))
    assert last_linear_names(Layout(names[:2], ((2, 3), (2,)), 2)) == names[:2]
    assert last_linear_names(Layout(("0.weight",), ((4, 3, 3),), 1)) == ()


@pytest.mark.parametrize(
    ("layers", "names"),
    [
        ("null", ["3.weight", "3.bias"]),
        ("[1.*]", ["1.weight", "1.bias"]),
        ("[3.weight]", ["3.weight"]),
        ("[3.bias,*.bias]", ["1.bias", "3.bias"]),
    ],
)
def test_what_stays_is_chosen_by_patterns(tiny: Tiny, layers: str, names: list[str]):
    world = world_of(tiny(*SMALL, f"local.layers={layers}"))
    numbered = world.layout.views(torch.arange(world.layout.size))
    assert columns(world).tolist() == torch.cat([numbered[name].reshape(-1) for name in names]).tolist()


@pytest.mark.law("local=personal_layer", "LG-FedAvg (layers=body) is FedPer with the complementary layers, to the byte")
def test_lg_fedavg_shares_the_last_layer_alone_as_its_complement_does(tiny: Tiny):
    """To the byte: what is sent, what is averaged, what clients keep."""
    lg, complement = (world_of(tiny(*SMALL, f"local.layers={layers}")) for layers in ("body", "[1.*]"))
    last = lg.layout.columns(last_linear_names(lg.layout))
    assert columns(lg).tolist() == np.setdiff1d(np.arange(lg.layout.size), last).tolist()
    for (ours, _, sent), (theirs, _, other) in zip(lived(lg, 3), lived(complement, 3), strict=True):
        assert torch.equal(ours.models[0].flat, theirs.models[0].flat)
        assert torch.equal(sent.delta, other.delta)
        assert sent.delta[:, last].any()
        assert all(torch.equal(row, own(theirs)[client]) for client, row in own(ours).items())
    statistics = Layout(("0.weight", "1.weight", "1.bias", "1.mean"), ((2, 1, 1), (3, 2), (3,), (2,)), 3)
    assert PersonalLayer(layers="body").private_columns(statistics).tolist() == [0, 1, 11, 12]


@pytest.mark.law("local=personal_layer", "LG-FedAvg with all layers shared (layers=[]) is FedAvg, to the byte")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_where_nothing_stays_it_is_fedavg_to_the_byte(tiny: Tiny, engine: str):
    words = ("model.hidden=[5]", "rounds=3", "local.momentum=0.9", f"engine={engine}")
    words = (*words, "evaluation.personal_fraction=0.2")
    world = world_of(tiny("algorithm=lg_fedavg", *words, "local.layers=[]"))
    compatibility.refuse(world.exp)
    demand_same_rounds(world, world_of(tiny("local=sgd", *words)))
    state = lived(world, 2)[-1][0]
    assert torch.equal(personal.personal_models(world.exp, world, state, np.array([2]))[0], state.models[0].flat)


@pytest.mark.law(
    "local=personal_layer", "FedPer: the last layer is in no upload, and the global one keeps its first bytes"
)
@pytest.mark.parametrize("engine", ["loop", "stacked"])
@pytest.mark.parametrize("layers", ["null", "[1.weight,3.bias]"])
def test_the_personal_layer_is_in_no_upload(tiny: Tiny, engine: str, layers: str):
    world = world_of(tiny(*SMALL, f"engine={engine}", f"local.layers={layers}"))
    kept = columns(world)
    rest = np.setdiff1d(np.arange(world.layout.size), kept)
    for state, _, sent in lived(world, 4):
        assert len(sent.owner) == 3
        assert not sent.delta[:, kept].any()
        assert sent.delta[:, rest].any(dim=1).all()
        assert torch.equal(state.models[0].flat[kept], world.first.flat[kept])
        assert not torch.equal(state.models[0].flat[rest], world.first.flat[rest])


@pytest.mark.law("local=personal_layer", "FedPer: the body that is sent in the first round is FedAvg's, to the byte")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_the_first_round_trains_what_sgd_trains(tiny: Tiny, engine: str):
    words = ("model.hidden=[5]", "local.momentum=0.9", "local.weight_decay=0.01", f"engine={engine}")
    ours, plain = (world_of(tiny(f"local={rule}", *words)) for rule in ("personal_layer", "sgd"))
    (state, _, sent), (_, _, whole) = lived(ours, 1)[0], lived(plain, 1)[0]
    kept = columns(ours)
    rest = np.setdiff1d(np.arange(ours.layout.size), kept)
    assert torch.equal(sent.delta[:, rest], whole.delta[:, rest])
    for client, delta in zip(sent.owner.tolist(), whole.delta, strict=True):
        torch.testing.assert_close(own(state)[client], (ours.first.flat + delta)[kept])


@pytest.mark.law(
    "local=personal_layer",
    "FedPer: the body is the mean of the clients' bodies, and each last layer goes on from its own",
)
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_three_rounds_by_hand(tiny: Tiny, engine: str):
    """One full-batch step a round: the body is averaged, each client's last layer goes on from its own."""
    words = ("local.batch_size=full", "selector=all", "scenario.clients=2", "local.lr=0.5", f"engine={engine}")
    world = world_of(tiny(*SMALL, *words))
    body = {name: view.clone() for name, view in world.layout.views(world.first.flat).items() if name[0] == "1"}
    heads = [{name: view.clone() for name, view in world.layout.views(world.first.flat).items() if name[0] == "3"}] * 2
    for state, _, _ in lived(world, 3):
        stepped = [step(world, client, {**body, **heads[client]}) for client in range(2)]
        sizes = world.partition.sizes / world.partition.sizes.sum()
        body = {name: sizes[0] * stepped[0][name] + sizes[1] * stepped[1][name] for name in body}
        heads = [{name: one[name] for name in heads[0]} for one in stepped]
        moved = world.layout.views(state.models[0].flat)
        for name, entry in body.items():
            torch.testing.assert_close(moved[name], entry.float(), atol=1e-5, rtol=1e-5)
        for client, head in enumerate(heads):
            flat = torch.cat([head["3.weight"].reshape(-1), head["3.bias"]])
            torch.testing.assert_close(own(state)[client], flat, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(heads[0]["3.weight"], heads[1]["3.weight"], atol=1e-3)


def step(world: World, client: int, entries: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """One gradient step of a 12-5-10 network on all of a client's examples."""
    w = {name: entry.detach().float().requires_grad_() for name, entry in entries.items()}
    place = torch.from_numpy(world.partition.shard(client))
    hidden = F.relu(F.linear(world.train.inputs(place).flatten(1), w["1.weight"], w["1.bias"]))
    loss = F.cross_entropy(F.linear(hidden, w["3.weight"], w["3.bias"]), world.train.y[place])
    grads = torch.autograd.grad(loss, list(w.values()))
    return {name: (entry - 0.5 * grad).detach() for (name, entry), grad in zip(w.items(), grads, strict=True)}


@pytest.mark.law("local=personal_layer", "FedPer: a client that is not asked keeps its layer, to the byte")
def test_who_is_not_asked_keeps_its_layer_and_memory_grows_with_those_who_are(tiny: Tiny):
    world = world_of(tiny(*SMALL, "scenario.participants=2"))
    assert own(lived(world, 1)[0][0])[int(lived(world, 1)[0][2].owner[0])].shape == (5 * 10 + 10,)
    seen = set()
    for (before, _, _), (after, _, sent) in pairwise(lived(world, 5)):
        asked = set(sent.owner.tolist())
        assert set(own(after)) == set(own(before)) | asked
        for client, row in own(before).items():
            assert torch.equal(row, own(after)[client]) == (client not in asked)
            seen.add(client in asked)
    assert seen == {True, False}


@pytest.mark.law(
    "local=personal_layer", "FedPer: a client's model is the global body with its own last layer, to the byte"
)
def test_the_received_rest_and_the_own_layer_make_the_own_model(tiny: Tiny):
    world = world_of(tiny(*SMALL, "scenario.participants=2", "evaluation.personal_fraction=0.3"))
    state, _, sent = lived(world, 2)[-1]
    client, stranger = int(sent.owner[0]), next(client for client in range(6) if client not in own(state))
    rows = personal.personal_models(world.exp, world, state, np.array([client, stranger]))
    expected = state.models[0].flat.clone()
    assert torch.equal(rows[1], expected)
    expected[columns(world)] = own(state)[client]
    assert torch.equal(rows[0], expected)


@pytest.mark.law(
    "local=personal_layer",
    "FedPer: two clients with opposite labels are right above 0.85, where FedAvg is at 0.5 or below",
)
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_clients_that_contradict_each_other(tiny: Tiny, engine: str):
    """Two clients with the same examples and opposite labels: each is right with a layer of its own, half without."""
    words = ("scenario.clients=2", "scenario.participants=2", "evaluation.personal_fraction=0.5", f"engine={engine}")
    accuracies, rng = {}, np.random.default_rng(0)
    for rule in ("personal_layer", "sgd"):
        world = world_of(tiny(f"local={rule}", *words, "local.epochs=5", "local.lr=0.3", "rounds=30"))
        for part in (world.partition, world.held_out):
            first, second = (torch.from_numpy(part.shard(client)) for client in range(2))
            assert len(first) == len(second) == 30
            x = torch.from_numpy(rng.normal(size=(30, *world.train.x.shape[1:])).astype(np.float32))
            y = (x.flatten(1)[:, 0] > 0).long()
            world.train.x[first], world.train.x[second] = x, x
            world.train.y[first], world.train.y[second] = y, 1 - y
        *_, (_, row, _) = run_rounds(world.exp, world, world.initial_state())
        accuracies[rule] = row["personal_accuracy"]
    assert accuracies["sgd"] <= 0.5  # what is right for one is wrong for the other
    assert accuracies["personal_layer"] > 0.85


@pytest.mark.law(
    "local=personal_layer",
    "FedPer: attacks, noise, robust rules and server optimizers do not move the last layer of the global model",
)
@pytest.mark.parametrize(
    "words",
    [
        ("attack=same_value", "scenario.malicious=3"),
        ("privacy=client_local", *SPENT),
        ("privacy=client_central", *SPENT, "aggregator.weighting=uniform"),
        ("privacy=dp_sgd", *SPENT),
        ("aggregator=fedplus_centre", "aggregator.penalty=l1", "aggregator.mu=0.01", "aggregator.alpha=1"),
        ("aggregator=secure_mean",),
        ("aggregator=krum",),
        ("pre_aggregation=bucketing",),
        ("server_optimizer=adam",),
        ("selector=hybridfl", "fleet=simulated", "selector.upload_permission=0.9", "selector.round_s=2"),
    ],
    ids=lambda words: words[0],
)
def test_nothing_moves_the_layer_of_the_global_model(tiny: Tiny, words: tuple[str, ...]):
    world = world_of(tiny(*SMALL, "selector=all", *words))
    compatibility.refuse(world.exp)
    *_, (state, _, sent) = lived(world, 3)
    kept = columns(world)
    torch.testing.assert_close(state.models[0].flat[kept], world.first.flat[kept], atol=1e-7, rtol=0)
    assert not torch.allclose(state.models[0].flat, world.first.flat, atol=1e-4)
    assert not sent.delta[:, kept].any()
    assert all(not torch.equal(row, world.first.flat[kept]) for row in own(state).values())


@pytest.mark.law("local=personal_layer", "FedPer: the bytes of a round are those of the body")
def test_only_what_travels_is_counted(tiny: Tiny):
    world = world_of(tiny(*SMALL, "fleet=simulated"))
    whole, sent = world.layout.size, world.layout.size - 60
    row = lived(world, 1)[0][1]
    assert row["mb_down"] == row["mb_up"] == pytest.approx(3 * 4 * sent / 1e6)
    assert context.make_context(world, 1).traffic.download_bits == 32 * sent
    assert context.make_context(world_of(tiny("model.hidden=[5]")), 1).traffic.download_bits == 32 * whole
    shares = world_of(tiny(*SMALL, "aggregator=secure_mean"))
    row = lived(shares, 1)[0][1]
    assert row["mb_up"] == pytest.approx(3 * 8 * 3 * (sent + 1) / 1e6)
    assert row["aggregator.partner_bytes"] == 8 * 3 * (sent + 1) + 8 * 9
    assert context.make_context(shares, 1).traffic.upload_ratio == pytest.approx(8 * 3 * (sent + 1) / (4 * sent))


def test_the_layer_survives_a_training_that_is_not_finite(tiny: Tiny):
    world = world_of(tiny(*SMALL, "selector=all"))
    state, _, _ = lived(world, 1)[0]
    with torch.no_grad():
        world.train.x[world.partition.shard(2)[0]] = torch.inf
    after, row, _ = run_round(world.exp, world, state)
    assert row["aggregator.dropped"] == 1
    assert [client for client, layer in own(after).items() if torch.equal(layer, own(state)[client])] == [2]


def test_beside_statistics_that_clients_keep(tiny: Tiny):
    """Kept statistics go on being sent; the layer is not."""
    words = ("model=complex_cnn", "model.buffers=local", "dataset.shape=[1,8,8]")
    world = world_of(tiny("local=personal_layer", *words))
    kept, parameters = columns(world), world.layout.parameters
    assert personal_columns(world.exp, world.layout).tolist() == [*kept.tolist(), *range(parameters, world.layout.size)]
    for state, _, sent in lived(world, 2):
        assert not sent.delta[:, kept].any()
        assert sent.delta[:, parameters:].any(dim=1).all()
        assert torch.equal(state.models[0].flat[kept], world.first.flat[kept])
    statistics = world_of(tiny("local=personal_layer", *words[::2], "local.layers=[1.*]"))
    assert columns(statistics).tolist()[-64:] == list(range(parameters, parameters + 64))


def test_models_on_the_test_data_have_their_own_layer(tiny: Tiny):
    world = world_of(tiny(*SMALL))
    (before, _, _), (after, _, sent) = lived(world, 2)
    rows = local_models.trained_rows(world.exp, world, before, after, sent)
    for client, row in zip(sent.owner.tolist(), rows, strict=True):
        assert torch.equal(row[columns(world)], own(after)[client])


def test_layers_come_back_from_disk(tiny: Tiny, tmp_path: Path):
    config = tiny(*SMALL, "rounds=5")
    world = world_of(config)
    whole = lived(world, 5)
    checkpoint.save(tmp_path, whole[2][0], config, {"name": "loop", "reason": ""})
    loaded = checkpoint.load(tmp_path, config, torch.device("cpu"))
    assert loaded is not None
    *_, (state, _, _) = run_rounds(world.exp, world, loaded.state)
    assert torch.equal(state.models[0].flat, whole[-1][0].models[0].flat)
    assert state.memory["personal"].keys() == {"owner", "rows"}
    assert all(torch.equal(row, own(whole[-1][0])[client]) for client, row in own(state).items())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("local.layers=[9.*]",),
            r"local\.layers must match entries of model=mlp, but 9\.\* matches none; .* 1\.\*, 3",
        ),
        (("local.layers=['*']",), r"local=personal_layer must leave something to share, but all layers of model=mlp"),
        (("model.hidden=[]",), "local=personal_layer must leave something to share"),
        (
            ("local.layers=body", "model=logistic"),
            r"^local\.layers=body must leave something with the clients, but model=logistic is its last linear layer "
            r"alone: 1\.\*; use local=sgd or give the model more$",
        ),
        (("aggregator=pfnm",), "local=personal_layer keeps entries of the network from round to round"),
    ],
)
def test_refused(tiny: Tiny, words: tuple[str, ...], message: str):
    with pytest.raises(ConfigError, match=message) as told:
        compatibility.refuse(spec.build(tiny("local=personal_layer", *words)))
    assert "\n" not in str(told.value)


def test_norms_are_the_layers_that_keep_a_mean():
    names = ("0.weight", "1.weight", "1.bias", "3.weight", "3.bias", "1.running_mean", "1.running_var")
    layout = Layout(names, ((2, 2, 3), (2,), (2,), (3, 2), (3,), (2,), (2,)), 5)
    assert batch_norm_names(layout) == ("1.weight", "1.bias", "1.running_mean", "1.running_var")
    assert batch_norm_names(Layout(names[:1], ((2, 2, 3),), 1)) == ()


@pytest.mark.law(
    "algorithm=fedbn",
    "the normalisation is in no upload, differs from client to client, and the global one keeps its bytes",
)
@pytest.mark.usefixtures("_double", "_narrow")
def test_fedbn_averages_all_but_the_normalisation(tiny: Tiny):
    """Every client ends with its own normalisation and the mean of the other layers, whatever the engine."""
    words = ("algorithm=fedbn", "model=complex_cnn", "dataset.shape=[1,8,8]", "selector=all", "local.batch_size=10")
    ends = []
    for engine in ("loop", "stacked"):
        world = world_of(tiny(*words, f"engine={engine}"))
        kept, every = columns(world), torch.arange(world.layout.size)
        shared = every[~torch.isin(every, kept)]
        names = world.layout.views(torch.isin(every, kept))
        assert {name for name, mine in names.items() if mine.all()} == set(batch_norm_names(world.layout)) != set()
        [(state, _, sent)] = lived(world, 1)
        assert torch.equal(state.models[0].flat[kept], world.first.flat[kept])
        assert not sent.delta[:, kept].any()
        assert sent.delta[:, shared].any()
        assert sorted(own(state)) == list(range(6))
        assert len({tuple(row.tolist()) for row in own(state).values()}) == 6
        ends.append(torch.cat([state.models[0].flat, *own(state).values()]))
    torch.testing.assert_close(*ends, atol=1e-9, rtol=0)


def test_a_network_without_a_linear_layer_is_refused():
    class Convolution(Model):
        def network(self, facts: Facts) -> nn.Module:
            return nn.Sequential(nn.Conv2d(1, 10, 8), nn.Flatten())

    facts = Facts((1, 8, 8), 10, 100)
    for layers in (None, "body"):
        with pytest.raises(ConfigError, match=r"which has no linear layer; its layers are 0\.\*"):
            PersonalLayer(layers=layers).refuse(Convolution(), facts)


def test_norms_where_there_are_none_are_refused(tiny: Tiny):
    with pytest.raises(ConfigError, match=r"local\.layers=norms needs batch normalisation, which model=mlp does not"):
        compatibility.refuse(spec.build(tiny("algorithm=fedbn")))
