"""APFL beside a co-author's program.

Of github.com/MLOPTPSU/FedTorch at ab8068dbc96804a5c1a8b898fd115175cfebfe75 ran train_and_validate_apfl_centered of
fedtorch/comms/trainings/federated/centered/apfl.py, with inference_personal, alpha_update, its SGD and
fedavg_aggregation_centered; measuring and logging were left out. Set as here: one round of two full-batch steps, rate
0.5, alpha 0.25, no momentum, equal weights of the clients. Its learning rate's schedule was constant.

What is sent agrees. A client's own model does not, as the program leaves algorithm 1 of the paper in three things. (1)
v descends at the mixture with the w that has already taken its step; in the paper and here both steps begin at the
values before. (2) It mixes the answers of the two models, alpha f(v) + (1 - alpha) f(w), and not their entries as the
paper and we do: for a model that is linear in its entries that is the same. (3) Where alpha moves, it moves in the
first step of a round alone, by the rate times (alpha^2 + (1 - alpha)^2) <v - w, g> + 0.02 alpha, where g is the
gradient of the mixture, and v and w have taken their steps; in the paper and here it is <v - w, g>, before the steps,
and ours moves in every step.
"""

import pytest
import torch
from authors.three_clients import (
    CLIENTS,
    INPUTS,
    LABELS,
    assert_agrees,
    assert_same,
    first_model,
    gradient,
    linear,
    network,
    own_models,
    states,
    three_clients,
)
from torch import nn
from worlds import Tiny

pytestmark = pytest.mark.usefixtures("_double")

WORDS = (
    *("local=apfl", "local.lr=0.5", "local.alpha=0.25", "local.batch_size=full", "local.epochs=2"),
    *("aggregator.weighting=uniform", "rounds=1"),
)
LINEAR = "model.factory=authors.three_clients:linear"
SENT = """
0.8283242361 -0.3973481638 -0.2523593782 0.4768825307 0.04903514212 0.1704656331 -0.01390803894 0.03730978659
-0.02340174765
"""
OWN = """
0.9114643532 -0.5620848109 -0.3677378579 0.6375485594 0.08127350467 0.1745362515 0.1095820564 0.2159312719 -0.3255133282
1.027945766 -0.2685760919 -0.1834055188 0.4833687885 -0.2195402476 0.03520730342 0.1534923498 -0.1745939244
0.02110157461
0.5014315309 -0.422281908 -0.2062859963 0.3227442465 0.3298544654 0.3495376615 -0.2963785559 0.1223995227 0.1739790332
"""
DEEP_SENT = """
0.6242686897 -0.1971377085 0.1603647488 0.6910808633 -0.3773613955 0.162356196 0.1150831046 -0.2441789323 0.01058738311
0.8389091077 -0.4140649235 0.1936776875 -0.2727126588 0.489367219 0.3927618412 0.05880355107 0.1746977045 -0.5864395287
-0.03046613468 0.05998876613 -0.02952263145
"""
DEEP_OWN = """
0.5413497209 -0.2775474997 0.2037224718 0.7621838148 -0.4893314256 0.1432559782 0.122107321 -0.2578167721 0.1069389344
0.7861776297 -0.5061674021 0.2210571318 -0.2755690111 0.5094991377 0.4005976546 0.1143913814 0.2466682644 -0.6216547865
0.02662558467 0.1512841124 -0.1779096971
0.5541953358 -0.2039360861 0.2021562782 0.7083614633 -0.4182071763 0.1761502843 0.1593138122 -0.2848340986 0.02855858119
0.7850413805 -0.4358084502 0.215373158 -0.2513543369 0.5107578291 0.3659656508 0.09131295638 0.1750506211 -0.5813388088
0.02264669032 0.05759031241 -0.08023700273
0.4872423672 -0.2335651411 0.2731148539 0.7370652926 -0.5067962033 0.08186390228 0.09099615082 -0.206523385
0.02725437632 0.7307317803 -0.4897628565 0.2606015933 -0.2344430651 0.4672177708 0.3672849075 0.1287112848 0.2725450857
-0.6278865008 -0.0658503405 0.1233602265 -0.05750988598
"""
LEARNED_ALPHA = """
0.2220993701 0.1606286336 0.1807968482
"""


@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_what_is_sent(tiny: Tiny, tmp_path, engine: str):
    for words, numbers in (((LINEAR,), SENT), ((), DEEP_SENT)):
        [state] = states(three_clients(tiny, tmp_path, *WORDS, f"engine={engine}", *words))
        assert_agrees(state.models[0].flat, numbers)


def mixtures(after: bool) -> torch.Tensor:
    """The clients' own linear models, written out: v descends after w has, or both at once."""
    rows = []
    for client in CLIENTS:
        v = w = first_model(linear)
        for _ in range(2):
            w_next = w - 0.5 * gradient(w, client, linear)
            mixture = 0.25 * v + 0.75 * (w_next if after else w)
            v, w = v - 0.5 * 0.25 * gradient(mixture, client, linear), w_next
        rows.append(0.25 * v + 0.75 * w)
    return torch.stack(rows)


@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_whose_step_comes_first_is_the_difference_of_linear_models(tiny: Tiny, tmp_path, engine: str):
    world = three_clients(tiny, tmp_path, *WORDS, LINEAR, f"engine={engine}")
    [state] = states(world)
    assert_same(own_models(world, state), mixtures(after=False))
    assert_agrees(mixtures(after=True), OWN)


def test_of_deep_models_theirs_mixes_the_answers():
    rows = []
    for client in CLIENTS:
        v = w = first_model()
        for _ in range(2):
            w = w - 0.5 * gradient(w, client)
            v = v - 0.5 * answer_gradient(v, w, client)
        rows.append(v)
    assert_agrees(torch.stack(rows), DEEP_OWN)


def answer_gradient(v: torch.Tensor, w: torch.Tensor, client: slice) -> torch.Tensor:
    """The gradient by v of the cost of mixed answers."""
    models, x = (network(), network()), torch.tensor(INPUTS)[client]
    for model, row in zip(models, (v, w), strict=True):
        nn.utils.vector_to_parameters(row, model.parameters())
    answers = 0.25 * models[0](x) + 0.75 * models[1](x)
    loss = nn.functional.cross_entropy(answers, torch.tensor(LABELS)[client])
    return nn.utils.parameters_to_vector(torch.autograd.grad(loss, list(models[0].parameters())))


def test_how_its_alpha_moves():
    """After a round of one step, where ours stays: v and w are the same before it."""
    alphas = []
    for client in CLIENTS:
        first = first_model(linear)
        w = first - 0.5 * gradient(first, client, linear)
        slope = gradient(0.25 * first + 0.75 * w, client, linear)
        v = first - 0.5 * 0.25 * slope
        alphas.append(0.25 - 0.5 * ((0.25**2 + 0.75**2) * (v - w) @ slope + 0.02 * 0.25))
    assert_agrees(torch.stack(alphas), LEARNED_ALPHA)
