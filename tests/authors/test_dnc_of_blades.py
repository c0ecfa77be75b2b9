"""DnC beside Blades, which is by others.

The authors' repository, github.com/vrt1shjwlkr/NDSS21-Model-Poisoning at f2879cd5eade97f02ebbaa795c63067a53de7979, has
their attacks and five other rules, but not DnC. Of github.com/lishenghui/blades at its tag v0.1.0
(a7238f20ece562d24772421a7e57f9b792c9b8eb) ran Dnc of src/blades/aggregators/dnc.py in float64, on nine rows; the
columns that it drew are in the tests. Its module of clients, which a newer PyTorch cannot load, was left out.

It agrees if there is one turn. With several it differs from ours in one thing: it takes the mean of the rows that any
turn kept, ours of those that every turn kept, which is the paper's intersection.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import torch
from authors.five_columns import numbers, rows
from authors.three_clients import assert_same
from worlds import uploads_like

from fedexp.core.values import Layout, Weights
from fedexp.parts.aggregator.dnc import DnC, outlying_rows
from fedexp.parts.context import Context

pytestmark = pytest.mark.usefixtures("_double")

ALL_COLUMNS = """
0.48828125 0.37109375 0.546875 0.2265625 0.59375 0.2008928571 -0.07589285714 0.3348214286 -0.3705357143 0.0625
-0.02083333333 0.078125 0.3385416667 -0.2916666667 0.2916666667 0.21875 0.25 0.3375 -0.15 0.05
"""  # f = 1, 2, 3 and 4
THREE_COLUMNS = """
0.4947916667 0.1145833333 0.421875 -0.6875 -0.05729166667 0.45 -0.16875 0.53125 -0.60625 0.20625
"""
TWO_TURNS = """
0.2008928571 -0.07589285714 0.3348214286 -0.3705357143 0.0625 0.1145833333 -0.34375 0.4114583333 -0.25 0.3020833333
"""
DRAWN = ((3, ((0, 4), (2, 3))), (4, ((0, 4), (3, 4))))  # f, and the columns of each of the two turns


def reduced(f: int, *turns: Sequence[int]) -> torch.Tensor:
    """The mean `[5]` if `f` of the nine rows may be wrong and these columns are drawn in each turn."""
    draws = iter(turns)
    rng = SimpleNamespace(choice=lambda *_, **__: np.array(next(draws)))
    ctx = cast(Context, SimpleNamespace(rng=lambda _: rng))
    weights = Weights(torch.zeros(5), Layout(("w",), ((5,),), 1))
    return DnC(iterations=len(turns)).reduce_in_round(weights, uploads_like(rows(9)), f, ctx)[0]


def test_one_turn():
    assert_same(torch.stack([reduced(f, range(5)) for f in (1, 2, 3, 4)]), numbers(ALL_COLUMNS))
    assert_same(torch.stack([reduced(3, (0, 1, 4)), reduced(4, (0, 2, 4))]), numbers(THREE_COLUMNS))


def test_in_several_turns_it_keeps_what_any_turn_keeps():
    for (f, turns), theirs in zip(DRAWN, numbers(TWO_TURNS), strict=True):
        out = [set(outlying_rows(rows(9)[:, list(columns)], f).tolist()) for columns in turns]
        in_all, in_any = set.intersection(*out), set.union(*out)
        assert in_all != in_any
        assert_same(rows(9)[[row for row in range(9) if row not in in_all]].mean(dim=0), theirs)
        assert_same(reduced(f, *turns), rows(9)[[row for row in range(9) if row not in in_any]].mean(dim=0))
