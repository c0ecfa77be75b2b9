"""How every picture of a report looks: colours that colour-blind readers can tell apart, one legend below.

The colours are those of Okabe and Ito (2008) without yellow, which is too pale for a line; after seven methods the
dashes change. matplotlib is imported when a picture is made.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fedexp.report.methods import Method

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)))
_LEGEND_ROW = 0.21  # inches


def color(method: Method) -> str:
    """The colour of a method, the same in every picture."""
    return COLORS[method.position % len(COLORS)]


def line(method: Method) -> dict[str, Any]:
    """How a method's line is drawn."""
    dashes = _DASHES[method.position // len(COLORS) % len(_DASHES)]
    return {"color": color(method), "linestyle": dashes, "linewidth": 1.8}


def figure(width: float, height: float, methods: Sequence[Method]) -> "Figure":
    """An empty figure with room for the legend of these methods."""
    from matplotlib.figure import Figure

    rows = -(-len(methods) // _columns(width, methods))
    return Figure(figsize=(width, height + _LEGEND_ROW * rows), layout="constrained")


def legend(drawn: "Figure", methods: Sequence[Method], extra: Sequence[Any] = ()) -> None:
    """Names the methods below the picture; `extra` are further handles with labels of their own."""
    from matplotlib.lines import Line2D

    handles = [*(Line2D([], [], **line(method)) for method in methods), *extra]
    names = [*(_with_seeds(method) for method in methods), *(handle.get_label() for handle in extra)]
    columns = _columns(drawn.get_figwidth(), methods)
    made = drawn.legend(handles, names, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)
    for text in made.get_texts():
        text.set_parse_math(False)


def finish(axes: "Axes", title: str, horizontal: str, vertical: str) -> None:
    """Titles, a quiet grid, no box."""
    axes.set_title(title, fontsize=11)
    axes.set_xlabel(horizontal)
    axes.set_ylabel(vertical)
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def whole(axis: Any) -> None:
    """Ticks at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))


def _with_seeds(method: Method) -> str:
    count = len(method.runs)
    return f"{method.label} ({count} seeds)" if count > 1 else method.label


def _columns(width: float, methods: Sequence[Method]) -> int:
    longest = max((len(_with_seeds(method)) for method in methods), default=1)
    return max(1, min(len(methods), int(width / (0.066 * longest + 0.55))))
