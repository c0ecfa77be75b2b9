"""Robust rules beside byzfl, whose authors are among those of MDA, SMEA, CAF and ARC; MeaMed is by others.

Of byzfl 0.0.11 on PyPI (github.com/LPD-EPFL/byzfl) ran the classes of byzfl/aggregators, on NumPy arrays in float64.

MDA and MeaMed: nothing differs. Of two values equally far from the median MeaMed takes the smaller one, and byzfl any;
here such values are both out, or both in.

ARC: nothing differs. Its number of rows to shorten is rounded down from floats, ours from whole numbers; they are the
same for all f < n / 2 and n to 200.

SMEA: the program takes one step of the power method from a drawn direction, and for the largest eigenvalue the length
of what comes out. So what it returns is drawn, too: on nine rows with f = 4 four seeds gave four means. With max_iters
3000, the one number that was changed in its text, it is the paper's rule, and nothing differs.
"""

import pytest
import torch
from authors.three_clients import assert_same
from matrices import equal_shares

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


def rows(count: int) -> torch.Tensor:
    """Rows `[n, 5]` of short binary fractions, of which the last two lie far out."""
    i, j = torch.arange(count)[:, None], torch.arange(5)
    made = ((11 * i**2 + 3 * i * j + 11 * j**2) % 101 - 50) / 32
    made[-2:] += 3
    return made


def numbers(text: str) -> torch.Tensor:
    """Numbers of a text, one row after the other, `[n, 5]`."""
    return torch.tensor([float(word) for word in text.split()]).reshape(-1, 5)


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
