"""FedEM beside its authors' program.

Of github.com/omarfoq/FedEM at 996faddf865fd03c6852b7ffe64410e31b339e94 ran CentralizedAggregator.mix of aggregator.py
with MixtureClient of client.py, LearnersEnsemble and Learner of learners, average_learners and LinearLayer, on two
components. It knows float32 only; torch.float32 was made a name of float64. Set as here: rate 0.5, batches of two that
were neither shuffled nor dropped, two epochs.

With torch.optim.SGD as optimizer all agrees in both rounds. With its own get_optimizer("sgd"), which has momentum 0.9
and weight decay 0.0005 whatever is set, the first round agrees. In two things it differs from ours. (1) A client's
momentum goes on from round to round, ours begins anew. (2) Where clients are sampled, as two of three in the last run,
the mean is that of all clients, those too that hold what they received last.
"""

import pytest
import torch
from authors.servers import take_part
from authors.three_clients import (
    CLIENTS,
    INPUTS,
    LABELS,
    OUTPUT_BIASES,
    OUTPUT_WEIGHTS,
    assert_agrees,
    first_model,
    linear,
    states,
    three_clients,
)
from torch import nn
from worlds import Tiny

from fedexp.core.values import State
from fedexp.parts.model.mixture import MixtureNetwork

pytestmark = pytest.mark.usefixtures("_double")

WORDS = (
    *("local=fedem", "local.lr=0.5", "local.batch_size=2", "local.epochs=2", "local.order=file", "rounds=2"),
    *("aggregator.weighting=num_samples", "model.factory=authors.test_fedem:mixture"),
)
ITS_SGD = ("local.momentum=0.9", "local.weight_decay=0.0005")
COMPONENTS = """
0.8814256604 -0.5045149737 -0.2829246533 0.4452045643 0.02649899287 0.3093104094 0.04012579988 0.0544509903
-0.09457679018 -0.3579272456 0.1907703166 0.3783925558 0.3932458271 0.2295346897 -0.5840161437 -0.1786182434
0.1043179782 0.07430026521
1.024222535 -0.5204150218 -0.3226585457 0.4316268276 -0.07656398942 0.3387881942 0.08010641495 0.02977816632
-0.1098845813 -0.2687516865 0.1530793422 0.2982627892 0.38745926 0.2204888974 -0.5405386021 -0.2452731102 0.07835551976
0.1669175904
"""
SHARES = """
0.6648000859 0.3351999141 0.5274819194 0.4725180806 0.4702208938 0.5297791062
0.7773650286 0.2226349714 0.5643169439 0.4356830561 0.4206090631 0.5793909369
"""
WITH_ITS_SGD = """
1.014691718 -0.4765426712 -0.3831325082 0.3872232025 -0.007759180653 0.3388394805 0.06009641037 0.06493892197
-0.1250353323 -0.2061514629 0.1464625486 0.168502822 0.4150521322 0.2871686527 -0.5615146809 -0.2396107348 0.1266631554
0.1129475794
1.512825571 -0.5346245741 -0.596392096 0.3072279573 -0.2952357446 0.4758757088 0.125974628 0.07651480166 -0.2024894297
0.2364365122 -0.0813788684 -0.2602134964 0.429394165 0.2722560762 -0.3480152966 -0.478750959 0.1372948439 0.3414561151
"""
TWO_OF_THREE = """
0.8367864998 -0.5432783666 -0.286811258 0.4521219428 0.07502475823 0.3411564237 0.008027168637 0.09968743908
-0.1077146077 -0.4081653919 0.1532759427 0.3848126319 0.405577834 0.2733527601 -0.5588537767 -0.1861315003 0.1404670902
0.04566441014
"""


def mixture() -> nn.Module:
    """The output layer's rows without their last entries, and the same without their first ones."""
    second = nn.Linear(2, 3)
    with torch.no_grad():
        second.weight.copy_(torch.tensor(OUTPUT_WEIGHTS)[:, 1:])
        second.bias.copy_(torch.tensor(OUTPUT_BIASES).flip(0))
    return MixtureNetwork([linear(), second])


def components(state: State) -> torch.Tensor:
    """The global components, one after the other, `[18]`."""
    return state.models[0].flat[:18]


@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_two_rounds(tiny: Tiny, tmp_path, engine: str):
    both = states(three_clients(tiny, tmp_path, *WORDS, f"engine={engine}"))
    assert_agrees(torch.stack([components(state) for state in both]), COMPONENTS)
    assert_agrees(torch.stack([state.memory["personal"]["rows"].exp() for state in both]), SHARES)


def with_lasting_momentum(rounds: int) -> torch.Tensor:
    """The global components after each round if a client's momentum goes on, `[rounds, 18]`, written out."""
    row, means = first_model(mixture)[:18], []
    shares = torch.full((3, 2), 1 / 2)
    clients = [mixture().get_submodule("components") for _ in CLIENTS]
    descents = [torch.optim.SGD(client.parameters(), 0.5, momentum=0.9, weight_decay=0.0005) for client in clients]
    for _ in range(rounds):
        for number, part in enumerate(CLIENTS):
            x, y = torch.tensor(INPUTS)[part], torch.tensor(LABELS)[part]
            nn.utils.vector_to_parameters(row.clone(), clients[number].parameters())
            costs = [nn.functional.cross_entropy(layer(x), y, reduction="none") for layer in clients[number].children()]
            q = (shares[number].log() - torch.stack(costs, dim=1).detach()).softmax(dim=1)
            shares[number] = q.mean(dim=0)
            for batch in [*torch.arange(len(y)).split(2)] * 2:
                descents[number].zero_grad()
                for m, layer in enumerate(clients[number].children()):
                    cost = nn.functional.cross_entropy(layer(x[batch]), y[batch], reduction="none")
                    (q[batch, m] * cost).mean().backward()
                descents[number].step()
        trained = torch.stack([nn.utils.parameters_to_vector(client.parameters()).detach() for client in clients])
        row = torch.tensor([4 / 9, 2 / 9, 3 / 9]) @ trained
        means.append(row)
    return torch.stack(means)


def test_its_momentum_goes_on(tiny: Tiny, tmp_path):
    written_out = with_lasting_momentum(2)
    assert_agrees(written_out, WITH_ITS_SGD)
    first, second = states(three_clients(tiny, tmp_path, *WORDS, *ITS_SGD))
    torch.testing.assert_close(components(first), written_out[0], rtol=1e-9, atol=1e-12)
    assert not torch.allclose(components(second), written_out[1], atol=0.01)


def test_its_mean_is_that_of_all_clients(tiny: Tiny, tmp_path, monkeypatch: pytest.MonkeyPatch):
    take_part(monkeypatch, [0, 2], [0, 2])
    moved = components(states(three_clients(tiny, tmp_path, *WORDS))[0]) - first_model(mixture)[:18]
    assert_agrees(first_model(mixture)[:18] + 7 / 9 * moved, TWO_OF_THREE)
