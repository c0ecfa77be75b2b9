"""FedDecorr beside its authors' program.

Of github.com/bytedance/FedDecorr at 973e4af2d416e8dacda1fb19a328e440f9e815af ran local_training and global_aggregation
of approach/fedavg.py with FedDecorrLoss of loss.py. Set as here: full batches, three local epochs, rate 0.5, momentum
0.5, feddecorr_coef 0.25, no weight decay; features are what the last linear layer is given.

Its cost of a batch is a multiple of ours and of the paper's equation 6. That is the mean over all d^2 entries of the
squared correlations. The program takes the mean over the d (d - 1) entries off the diagonal, it divides by the
deviations with N - 1 for a batch of N examples but sums the products of features over the batch, so that an entry is N
- 1 times a correlation, and divides the mean of the squares by N. The diagonal's cost is constant up to the 1e-8 that
both add to variances. So its coefficient is our beta times (1 - 1/d) N / (N - 1)^2: a coefficient of 0.1 at 512
features and batches of 64 is our beta 6.21. With this factor, for batches of 4, 2 and 3 examples, all agrees to 1e-8
where nothing is added to variances, as its eps was set to 0 for once. As they are, the 1e-8 goes to the variances with
N - 1 and N in their denominators, and the diagonal's share to ours alone: all agrees to 5e-6.
"""

from pathlib import Path

import pytest
import torch
from authors.three_clients import assert_agrees, assert_same, states, three_clients
from worlds import Tiny, train_first_round

from fedexp.parts.local import feddecorr

pytestmark = pytest.mark.usefixtures("_double")

WORDS = ("local=feddecorr", "local.lr=0.5", "local.momentum=0.5", "local.epochs=3", "local.batch_size=full", "rounds=1")
SIZES = (4, 2, 3)
PROGRAM = """
0.8749879312 -0.5191757669 0.02433987442 0.820750071 -0.473231676 -0.1848192475 0.08319308379 -0.3395205902 0.4653098678
1.106333593 -0.5701751003 0.02314245858 -0.5086003141 0.6050554042 0.5928857783 0.02726672149 0.2151196961 -0.6160282369
0.2401024271 0.3819751421 -0.6220775692
1.004174935 0.1612296423 -0.0653660862 0.4550138708 0.155291203 0.5238386973 0.3634885458 -0.5753816489 -0.2605567562
1.164485222 -0.03414363809 0.08260561453 -0.2808307168 0.6165202003 0.3380919675 -0.2586545048 -0.3323765622
-0.4206975821 0.2112499007 -0.4810508888 0.269800988
0.385180087 -0.1385146647 0.4542981449 0.8545678759 -0.5528824568 -0.3116149929 -0.1668114907 0.1877323055 -0.2662537802
0.6038735057 -0.4756036492 0.3712255588 -0.1416552042 0.231587542 0.3401633597 0.1627816986 0.4940161072 -0.7113889184
-0.5990647957 0.1189526862 0.4801121096
"""
MEAN = """
0.7404268729 -0.2410875308 0.14772464 0.7507479615 -0.3601101854 -0.06960495266 0.06214610609 -0.2161831936
0.06015162425 0.9517694812 -0.4195331805 0.1523841933 -0.3356698114 0.4831138493 0.4520241253 0.008900330225
0.1864193313 -0.6044083186 -0.04603165302 0.1025174277 -0.05648577469
"""
WITHOUT_ADDITION = """
0.8749879551 -0.5191758144 0.02433988322 0.8207500694 -0.4732317739 -0.1848192608 0.08319307396 -0.3395205925
0.4653098551 1.106333597 -0.5701750974 0.02314245024 -0.5086003184 0.6050554024 0.5928857817 0.02726672188 0.215119695
-0.6160282319 0.2401024296 0.381975142 -0.6220775717
1.004174966 0.1612296629 -0.06536605838 0.4550138919 0.1552908762 0.5238384601 0.3634885416 -0.5753816431 -0.2605567736
1.164485234 -0.03414363564 0.0826055547 -0.2808307069 0.6165202059 0.3380919669 -0.2586545275 -0.3323765703
-0.4206975216 0.2112499015 -0.4810508925 0.269800991
0.3851801108 -0.1385146795 0.4542981549 0.8545678941 -0.5528824923 -0.311614969 -0.1668114982 0.1877323046 -0.2662537631
0.6038735059 -0.4756036497 0.3712255582 -0.1416552017 0.2315875383 0.3401633572 0.1627816958 0.4940161114 -0.7113889154
-0.5990647952 0.1189526845 0.4801121106
"""


def same_beta(coefficient: float, features: int, batch: int) -> float:
    """The beta that costs as much as the program's coefficient."""
    return coefficient * features / (features - 1) * (batch - 1) ** 2 / batch


def rows_at_same_betas(tiny: Tiny, folder: Path, engine: str) -> torch.Tensor:
    """What the clients come to, each at the beta for the size of its batch."""
    rows = []
    for client, size in enumerate(SIZES):
        beta = same_beta(0.25, 3, size)
        world = three_clients(tiny, folder, *WORDS, f"local.beta={beta}", f"engine={engine}")
        rows.append(train_first_round(world)[client, :21])
    return torch.stack(rows)


@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_a_size_of_batch_for_each_client(tiny: Tiny, tmp_path, engine: str):
    rows = rows_at_same_betas(tiny, tmp_path, engine)
    assert_agrees(rows, PROGRAM, within=5e-6)
    assert_agrees(torch.tensor(SIZES) / 9 @ rows, MEAN, within=5e-6)


@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_with_nothing_added_to_variances(tiny: Tiny, tmp_path, engine: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(feddecorr, "SMALLEST_VARIANCE", 0.0)
    assert_agrees(rows_at_same_betas(tiny, tmp_path, engine), WITHOUT_ADDITION)


def test_the_mean_is_by_examples(tiny: Tiny, tmp_path):
    """As the program's is."""
    world = three_clients(tiny, tmp_path, *WORDS)
    [state] = states(world)
    assert_same(state.models[0].flat, torch.tensor(SIZES) / 9 @ train_first_round(world)[:, :21])


def test_how_much_more_it_costs_in_their_experiments():
    assert same_beta(0.1, 512, 64) == pytest.approx(6.214, abs=0.001)
