"""Robust rules beside byzfl, whose authors are among those of MDA, SMEA, CAF and ARC; MeaMed is by others.

Of byzfl 0.0.11 on PyPI (github.com/LPD-EPFL/byzfl) ran the classes of byzfl/aggregators, on NumPy arrays in float64.

MDA and MeaMed: nothing differs. Of two values equally far from the median MeaMed takes the smaller one, and byzfl any;
here such values are both out, or both in.

ARC: nothing differs. Its number of rows to shorten is rounded down from floats, ours from whole numbers; they are the
same for all f < n / 2 and n to 200.

SMEA: the program takes one step of the power method from a drawn direction, and for the largest eigenvalue the length
of what comes out. So what it returns is drawn, too: on nine rows with f = 4 four seeds gave four means. With max_iters
3000, the one number that was changed in its text, it is the paper's rule, and nothing differs.

CAF: the program again takes one step of the power method, so what it returns is drawn; it ran with max_iters 3000. Then
it agrees where the farthest row of each turn still has a weight. Elsewhere one thing differs: it lowers the weights in
proportion to the largest squared distance of all rows, ours to that of the rows that still have a weight. So a turn of
the program may drop nobody, as with eight rows and f = 3. If one of nine rows lies 10^9 out and f = 2, the weights must
fall by 2.875 in all once it is out, and had fallen by 6.3e-8 after 100,000 turns of the program as it is. The paper's
own text could not be read. For f = 0 the program returns nothing.
"""

import pytest
import torch
from authors.five_columns import numbers, rows
from authors.three_clients import assert_same
from matrices import equal_shares

from fedexp.parts.aggregator.caf import CAF
from fedexp.parts.aggregator.mda import MDA
from fedexp.parts.aggregator.meamed import MeaMed
from fedexp.parts.aggregator.reporting import BoundedRule
from fedexp.parts.aggregator.smea import SMEA
from fedexp.parts.pre_aggregation.arc import ARC

pytestmark = pytest.mark.usefixtures("_double")

CASES = ((8, 1), (8, 3), (9, 2), (9, 4))  # rows, and how many of them may be wrong
MDA_MEANS = """
0.6294642857 0.3526785714 0.7633928571 0.05803571429 0.4910714286 0.325 0.31875 0.36875 -0.7875 0.00625 0.2008928571
-0.07589285714 0.3348214286 -0.3705357143 0.0625 0.8375 0.29375 0.4375 -0.625 -0.36875
"""
MEAMED_MEANS = """
0.3660714286 0.3526785714 0.5267857143 0.05803571429 0.4910714286 1.06875 0.9375 0.01875 -0.7875 1.225 0.78125
-0.07589285714 0.3348214286 -0.3705357143 0.0625 0.8375 0.3375 0.20625 -0.5625 0.625
"""
ARC_ROWS = """
-1.549541244 -1.20864217 -0.1859449492 1.518550419 0.7747706218 1.57641215 0.7598533385 1.338249163 1.020698514
0.9526519468 0.837349808 1.172289731 0.680346719 1.475829037 1.444428419
-1.549541244 -1.20864217 -0.1859449492 1.518550419 0.7747706218 0.837349808 1.172289731 0.680346719 1.475829037
1.444428419 1.41369002 0.765748761 1.325334394 1.109353974 1.109353974
"""  # of eight and of nine, the three that are shortened
SMEA_MEANS = """
0.6294642857 0.3526785714 0.7633928571 0.05803571429 0.4910714286 0.325 0.31875 0.36875 -0.7875 0.00625 0.2008928571
-0.07589285714 0.3348214286 -0.3705357143 0.0625 0.2875 0.3375 0.44375 -0.65625 0.19375
"""
CAF_MEANS = """
0.08788575234 0.157375094 0.31260366 -0.4477109549 0.1149257016 0.2296320595 -0.0004157906898 0.3680478707 -0.2847552528
0.1523366135 0.4528667461 0.09742870841 0.5554090205 -0.5563580783 0.05561982652
"""
CAF_WITH_ALL_DISTANCES = """
0.2165674988 0.382436773 0.5911813087 -0.5814162115 0.03260982077 0.4901871713 0.09771527817 0.92457082 -0.174492045
-0.2466757224
"""


def means(rule: BoundedRule, *cases: tuple[int, int]) -> torch.Tensor:
    """What a rule makes of so many rows, of which so many may be wrong, `[cases, 5]`."""
    return torch.stack([rule.reduce_and_report(rows(n), equal_shares(n), f)[0] for n, f in cases])


def test_mda():
    assert_same(means(MDA(), *CASES), numbers(MDA_MEANS))


def test_meamed():
    assert_same(means(MeaMed(), *CASES), numbers(MEAMED_MEANS))


def test_arc():
    shortened = []
    for (n, f), changed in (((8, 3), (0, 6, 7)), ((9, 2), (0, 7, 8))):
        clipped, _ = ARC().change_rows(rows(n), f)
        same = [row for row in range(n) if row not in changed]
        assert torch.equal(clipped[same], rows(n)[same])
        shortened.append(clipped[list(changed)])
    assert_same(torch.cat(shortened), numbers(ARC_ROWS))


def test_smea():
    assert_same(means(SMEA(), *CASES), numbers(SMEA_MEANS))


def test_caf():
    assert_same(means(CAF(), (8, 2), (9, 2), (9, 3)), numbers(CAF_MEANS))


def filtered_by_all_distances(n: int, f: int) -> torch.Tensor:
    """The mean of so many rows if those that are out have a part in the largest distance, written out."""
    delta, weight = rows(n), torch.ones(n)
    ends: list[tuple[float, torch.Tensor]] = []
    while weight.sum() > n - 2 * f:
        mean = weight @ delta / weight.sum()
        gap = delta - mean
        values, vectors = torch.linalg.eigh(gap.T @ (weight[:, None] * gap) / weight.sum())
        ends.append((float(values[-1]), mean))
        squares = (gap @ vectors[:, -1]).square()
        weight = weight * (1 - squares / squares.max())
    return min(ends, key=lambda end: end[0])[1]


def test_where_a_row_that_is_out_lies_farthest_caf_differs():
    written_out = torch.stack([filtered_by_all_distances(n, f) for n, f in ((8, 3), (9, 4))])
    assert_same(written_out, numbers(CAF_WITH_ALL_DISTANCES))
    assert not torch.isclose(means(CAF(), (8, 3), (9, 4)), written_out, rtol=0.01).all(dim=1).any()


def test_caf_ends_if_a_row_lies_very_far_out():
    delta = rows(9)
    delta[8] = 1e9 * torch.tensor([1.0, 2.0, -1.0, 0.5, 1.0])
    assert CAF().reduce_and_report(delta, equal_shares(9), 2)[0].norm() < 2
