"""The result of a comparison as Markdown, readable in a terminal too, and as CSV in full precision."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fedexp.compare.critical_difference import Ranks
from fedexp.compare.pairing import MethodPair
from fedexp.compare.statistics import FEWEST, MOST_EXACT, POWER, RESAMPLES, PairedStatistics, smallest_p
from fedexp.compare.study import Comparison, Row
from fedexp.maths.significance import LEVEL, pairs_needed
from fedexp.report.draw.markdown import Grid, escape_around_code, escape_markdown

if TYPE_CHECKING:
    import pandas as pd

HEADINGS = (
    "quantity", "better", "pairs", "A", "B", "A - B", "95 % interval", "wins/ties/losses", "p", "p Wilcoxon",
    "resolvable", "verdict",
)  # fmt: skip
_NONE = "-"


def markdown(
    comparison: Comparison, method_pairs: Sequence[MethodPair], picture: str | None, width: int | None = None
) -> str:
    """The whole page; tables are cut to `width` columns if it is given."""
    parts = [_pair_text(comparison, method_pair, width) for method_pair in method_pairs]
    if comparison.ranks is not None:
        parts.append(_ranking_text(comparison.ranks, comparison.ranked_by, picture))
    return "\n".join([*parts, *(f"* {escape_around_code(line)}" for line in explanations(comparison)), "", ""])


def frame(comparison: Comparison) -> "pd.DataFrame":
    """The rows of the comparison as a table, with corrected p-values."""
    import pandas as pd

    names = ("pairs", "a", "b", "difference", "low", "high", "wins", "ties", "losses", "only_a", "only_b", "neither")
    tests = ("p_mean", "p_wilcoxon", "resolvable", "verdict")
    return pd.DataFrame(
        [
            {"method_a": row.method_pair.a, "method_b": row.method_pair.b, "quantity": row.quantity.name}
            | {"better": row.quantity.better}
            | {name: getattr(row.result, name) for name in (*names, *tests)}
            for row in comparison.rows
        ]
    )


def document(comparison: Comparison, method_pairs: Sequence[MethodPair]) -> dict[str, Any]:
    """The comparison for programs, numbers in full precision; NaN where there is none."""
    ranks = comparison.ranks
    return {
        "method_pairs": [
            {
                "method_a": method_pair.a,
                "method_b": method_pair.b,
                "pairs": method_pair.blocks,
                "differences": method_pair.differences,
                "notes": method_pair.notes,
            }
            for method_pair in method_pairs
        ],
        "rows": frame(comparison).to_dict("records"),
        "ranks": ranks
        and {
            "by": comparison.ranked_by,
            "mean": dict(zip(ranks.names, ranks.mean.tolist(), strict=True)),
            "blocks": ranks.blocks,
            "p": ranks.p,
            "critical_difference": ranks.difference,
        },
        "notes": comparison.notes,
    }


def _pair_text(comparison: Comparison, method_pair: MethodPair, width: int | None) -> str:
    rows = comparison.of(method_pair)
    grid = Grid(HEADINGS, [cells(row) for row in rows], texts=2)
    facts = [f"{len(method_pair.pairs)} pair(s): {', '.join(method_pair.blocks)}"]
    facts += [f"differs (A / B): {line}" for line in method_pair.differences or ("nothing in config or commit",)]
    lines = [f"* {escape_around_code(line)}" for line in (*facts, *method_pair.notes)]
    a, b = map(escape_markdown, (method_pair.a, method_pair.b))
    censored = [f"* {row.quantity.name}: {_censored_text(row.result)}" for row in rows if _censored_count(row.result)]
    censored += [""] if censored else []
    table = grid.fit_width(width, "--wide shows them")
    return "\n".join([f"## {a} (A) against {b} (B)", "", *lines, "", table, *censored, _verdict_text(rows), ""])


def cells(row: Row) -> list[str]:
    """A row of the table as texts, under `HEADINGS`."""
    result, form = row.result, ".4f" if row.quantity.is_share else ",.4g"
    complete = result.pairs - _censored_count(result)
    mean, low, high = (_text(value, f"+{form}") for value in (result.difference, result.low, result.high))
    return [
        row.quantity.name,
        row.quantity.better,
        str(result.pairs) if complete == result.pairs else f"{complete} of {result.pairs}",
        _text(result.a, form),
        _text(result.b, form),
        mean,
        _NONE if result.low is None else f"{low} to {high}",
        f"{result.wins}/{result.ties}/{result.losses}",
        _NONE if result.p_mean is None else p_text(result.p_mean),
        p_text(result.p_wilcoxon),
        _text(result.resolvable, form),
        result.verdict,
    ]


def p_text(p: float) -> str:
    """A p-value; one that rounds to nothing is not nothing."""
    return f"{p:.0e}" if p < 0.001 else f"{p:.3f}"


def _text(value: float | None, form: str) -> str:
    return _NONE if value is None else format(value, form)


def _censored_count(result: PairedStatistics) -> int:
    return result.only_a + result.only_b + result.neither


def _censored_text(result: PairedStatistics) -> str:
    return (
        f"never reached by B alone in {result.only_a}, by A alone in {result.only_b}, by both in {result.neither} "
        "pair(s)"
    )


def _verdict_text(rows: Sequence[Row]) -> str:
    names_by_verdict: dict[str, list[str]] = {}
    for row in rows:
        names_by_verdict.setdefault(row.result.verdict, []).append(row.quantity.name)
    return "**" + "; ".join(f"{verdict}: {', '.join(names)}" for verdict, names in names_by_verdict.items()) + "**"


def ranks_grid(ranks: Ranks) -> Grid:
    """The methods, the best first."""
    return Grid(("method", "mean rank"), [[ranks.names[method], f"{ranks.mean[method]:.2f}"] for method in ranks.order])


def _ranking_text(ranks: Ranks, by: str, picture: str | None) -> str:
    grid = ranks_grid(ranks).markdown()
    differ = "not all methods are the same" if ranks.p <= LEVEL else "none was shown to differ"
    differ = "too few to tell" if ranks.blocks < pairs_needed(1) else differ
    text = (
        f"Friedman p {p_text(ranks.p)} over {ranks.blocks} block(s): {differ}. Methods whose mean "
        f"ranks are further apart than the critical difference {ranks.difference:.2f} (Nemenyi, 5 %) differ."
    )
    few = " With fewer than 10 blocks both are rough." if ranks.blocks < 10 else ""
    image = f"\n![Critical difference]({picture})\n" if picture else ""
    return f"## Ranks by {by}\n\n{grid}\n{text}{few}\n{image}"


def explanations(comparison: Comparison) -> Iterator[str]:
    """How the table is read, and what makes its rows doubtful."""
    family, pairs = len(comparison.rows), [row.result.pairs for row in comparison.rows]
    yield from comparison.notes
    yield (
        "A - B: mean over the pairs. Positive: A is better, where more is better; A is worse, where fewer or less is. "
        "Wins are A's."
    )
    if any(_censored_count(row.result) for row in comparison.rows):
        yield (
            "Means and intervals are those of the pairs in which both reached it; a run that never did counts as worse "
            "than any that did in wins and in Wilcoxon's test, which then gives the verdict."
        )
    flips = "exact" if max(pairs) <= MOST_EXACT else f"{RESAMPLES:,} drawn ones above {MOST_EXACT} pairs"
    few = f" Below {FEWEST} pairs there is none." if min(pairs) < FEWEST else ""
    yield f"Interval: Student's t of the mean of this row alone, not corrected.{few}"
    yield (
        "Interval, p and verdict are about other seeds on the same data; how sure a difference is for other test "
        "examples they do not say."
    )
    yield (
        f"p: test of the mean by sign flips, {flips}; p Wilcoxon: signed ranks; each Holm-corrected over the "
        f"{family} row(s). Verdict at {LEVEL:.0%} by p (where a run never reached it, by p Wilcoxon)."
    )
    yield (
        "Not resolved: no difference was found, which does not say that there is none. Resolvable: the smallest "
        f"difference that so many pairs, scattered like these, show in about {POWER:.0%} of the cases."
    )
    needed = pairs_needed(family)
    if min(pairs) < needed:
        several = len({row.quantity.name for row in comparison.rows}) > 1
        for_one = f", {pairs_needed(1)} for one (--measures {comparison.ranked_by})" if several else ""
        yield (
            f"Too few pairs: with {min(pairs)} the smallest p there is is {smallest_p(min(pairs), 1):.3g}, corrected "
            f"{smallest_p(min(pairs), family):.3g}; {needed} pairs are needed for {family} row(s){for_one}."
        )
