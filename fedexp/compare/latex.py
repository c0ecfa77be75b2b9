"""The result of a comparison as a LaTeX table (booktabs): a row for each method of A and quantity."""

from collections.abc import Sequence

from fedexp.compare.page import HEADINGS, cells, explanations, p_text, ranks_grid
from fedexp.compare.study import Comparison, Row
from fedexp.report.draw.markdown import Grid
from fedexp.report.pages import latex_page

_SHOWN = ("pairs", "A", "B", "A - B", "95 % interval", "p", "verdict")  # what fits the width of a paper


def document(comparison: Comparison, before: latex_page.TitledGrids = ()) -> str:
    """The table of the differences with their intervals, below other tables; of more than two methods the ranks too."""
    tables = [*before, ("Differences", differences(comparison.rows))]
    if comparison.ranks is not None:
        tables.append((f"Ranks by {comparison.ranked_by}", ranks_grid(comparison.ranks)))
    return latex_page.compose(tables, [*explanations(comparison)])


def differences(rows: Sequence[Row]) -> Grid:
    """The rows of all pairs of methods; where all have one method B, the heading names it, else a column.

    p is that of the test that gives the verdict: Wilcoxon's where a run never reached a target.
    """
    opponents = sorted({row.method_pair.b for row in rows})
    several = len(opponents) > 1
    headings = ["method (A)", "against (B)"] if several else [f"method (A) against {opponents[0]} (B)"]
    lines = []
    for row in rows:
        texts, names = dict(zip(HEADINGS, cells(row), strict=True)), [row.method_pair.a]
        texts["p"] = p_text(row.result.p)
        names += [row.method_pair.b] if several else []
        lines.append([*names, row.quantity.name, *(texts[name] for name in _SHOWN)])
    return Grid([*headings, "quantity", *_SHOWN], lines, texts=len(headings) + 1)
