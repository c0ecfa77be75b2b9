"""The mixture by hand, its copies, its shares in a row, and what it says of models that it cannot mix."""

import math

import numpy as np
import pytest
import torch
from composing import tiny as composed
from torch import nn
from worlds import Tiny, first_round, world_of

from fedexp.config import catalog
from fedexp.config.location import conf_dir
from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.core.values import Layout, Weights
from fedexp.export.network_source import load_source, network_source, plain_entries
from fedexp.parts import Facts
from fedexp.parts.layers import Mixing
from fedexp.parts.model.mixture import Mixture, MixtureNetwork
from fedexp.parts.model.mlp import MLP
from fedexp.simulation.setup import compatibility
from fedexp.training.client.objective import FeatureRecorder

FACTS = Facts((1, 8, 8), 10, 100)
IMAGES = ("dataset.shape=[1,8,8]", "model@model.component=complex_cnn")


class Constant(nn.Module):
    """Says the same logits of every example."""

    def __init__(self, *logits: float) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.tensor(logits))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.logits.expand(len(x), -1)


@pytest.mark.law("model=mixture", "the probabilities are the mean of the components', weighted by the shares")
def test_the_mixture_by_hand():
    """Probabilities (3/4, 1/4) and (1/4, 3/4) with the shares 1/5 and 4/5: 7/20 and 13/20; at first 1/2 each."""
    network = MixtureNetwork([Constant(math.log(3), 0.0), Constant(5.0, 5 + math.log(3))])
    recorder = FeatureRecorder(network)
    assert network(torch.zeros(2, 1)).exp().tolist() == [pytest.approx([0.5, 0.5])] * 2
    network.log_shares.copy_(torch.tensor([[0.2], [0.8]]).log())
    outputs = network(torch.zeros(2, 1))
    assert outputs.exp().tolist() == [pytest.approx([7 / 20, 13 / 20])] * 2
    features = recorder.pop_features(outputs)
    assert features.exp().tolist() == [[pytest.approx([3 / 20, 1 / 20]), pytest.approx([4 / 20, 12 / 20])]] * 2


@pytest.mark.law("model=mixture", "the shares are no trained entries: no step of any rule moves them")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_the_shares_are_entries_that_no_step_moves(tiny: Tiny, engine: str):
    world = world_of(tiny("model=mixture", "model.component.hidden=[4]", "local.momentum=0.5", f"engine={engine}"))
    columns = world.layout.columns((Mixing.shares,))
    assert len(columns) == 3
    assert columns.min() >= world.layout.parameters
    out = world.trainer.run(first_round(world), np.arange(3))
    assert out[:, columns].exp().unique().tolist() == [pytest.approx(1 / 3)]
    moved = out[:, : world.layout.parameters] != world.first.flat[: world.layout.parameters]
    assert moved.any(dim=1).all()


@pytest.mark.law("model=mixture", "one component has the answers of that model alone")
def test_copies_are_drawn_one_after_the_other_and_the_first_is_the_model_alone(tiny: Tiny):
    world, alone = (world_of(tiny(*words, "local.lr=0.1")) for words in (("model=mixture",), ("model=mlp",)))
    size = alone.layout.size
    copies = world.first.flat[: world.layout.parameters].view(3, size)
    assert torch.equal(copies[0], alone.first.flat)
    assert len(copies.unique(dim=0)) == 3
    single = world_of(tiny("model=mixture", "model.components=1"))
    x = single.train.inputs(slice(0, 9))
    assert torch.equal(single.first.flat[:size], alone.first.flat)
    answers, logits = (world.scorer.logits(Weights(world.first.flat, world.layout), x) for world in (single, alone))
    torch.testing.assert_close(answers, logits.log_softmax(1))


@pytest.mark.usefixtures("_double")
def test_statistics_of_its_components_move_beside_the_shares(tiny: Tiny):
    """Batch normalisation in the components: both engines leave the shares, and move all else alike."""
    few = ("dataset.train_size=24", "dataset.test_size=12", "local.batch_size=2", "model.components=2")
    worlds = [world_of(tiny("model=mixture", *IMAGES, *few, f"engine={engine}")) for engine in ("loop", "stacked")]
    task = first_round(worlds[0])
    loop, stacked = (world.trainer.run(task, np.arange(2)) for world in worlds)
    torch.testing.assert_close(stacked, loop, atol=1e-9, rtol=0)
    layout, first = worlds[0].layout, worlds[0].first.flat
    moved = (loop[:, : layout.size] != first).all(dim=0).numpy()
    statistics = layout.columns([name for name in layout.names if "running" in name])
    assert moved[statistics].all()
    assert not moved[layout.columns((Mixing.shares,))].any()


def test_buffers_that_stay_with_clients_are_those_of_the_components(tiny: Tiny):
    model = spec.build(tiny("model=mixture", *IMAGES, "model.buffers=local")).model
    assert model.component.buffers == "local"
    with pytest.raises(ConfigError, match=r"^model\.component\.buffers must be those of the mixture, average, got loc"):
        spec.build(tiny("model=mixture", "model.component.buffers=local"))


def test_an_export_has_the_shares_and_needs_no_fedexp():
    network = Mixture(component=MLP(hidden=(4,))).network(FACTS).eval()
    assert isinstance(network, MixtureNetwork)
    network.log_shares.copy_(torch.tensor([[0.2], [0.3], [0.5]]).log())
    copy = load_source(source := network_source(network))
    copy.load_state_dict(plain_entries(network, copy))
    x = torch.randn(3, 1, 8, 8)
    assert torch.equal(copy(x), network(x))
    assert "fedexp" not in source.partition('"""\n\n')[2]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("model@model.component=mixture",), r"^model\.component must be no mixture itself; set model@model\."),
        (("model.components=0",), r"^model\.components must be an integer >= 1, got 0$"),
        (
            ("model@model.component=lenet", "dataset.shape=[1,8,8]"),
            r"^model@model\.component=lenet needs images .*; use model@model\.component=mlp, which takes any shape$",
        ),
        (
            ("model@model.component=chain", "model.component.layers=[conv 4 3, linear]", "dataset.shape=[1,8,8]"),
            r"^model\.component\.layers: linear \(layer 2 of 2\) cannot take",
        ),
    ],
)
def test_refusals(words: tuple[str, ...], complaint: str):
    with pytest.raises(ConfigError, match=complaint):
        compatibility.refuse(spec.build(composed("model=mixture", *words)))


@pytest.mark.parametrize("targets", ["numbers", "labels"])
def test_answers_that_are_no_probabilities_of_classes_are_refused(targets):
    with pytest.raises(ConfigError, match=f"^model=mixture mixes probabilities .* are {targets}; use model=mlp$"):
        Mixture(component=MLP()).refuse(Facts((4,), 3, 10, targets=targets))


def test_the_catalogue_knows_the_part_inside():
    conf = conf_dir()
    assert catalog.inner_choices(conf, "model", "mixture") == {"model@model.component": "mlp"}
    assert catalog.inner_choices(conf, "model", "mlp") == catalog.inner_choices(conf, "model", "mine") == {}
    node = catalog.part(conf, "model", "mixture")
    assert node["component"] == catalog.part(conf, "model", "mlp") | {"buffers": "${model.buffers}"}
    assert catalog.own_keys(conf, "model", "mixture")["model.component.hidden"] == [128]


def test_the_row_has_the_components_before_the_shares():
    layout = Layout.of(Mixture(components=2, component=MLP(hidden=(4,))).network(FACTS))
    assert layout.names[:2] == ("components.0.1.weight", "components.0.1.bias")
    assert layout.names[layout.trainable :] == (Mixing.shares,)
