"""How every picture looks: colours, lines, a quiet grid, the legend below it; and how it is saved.

The colours are those of Okabe and Ito (2008) without yellow, which is too pale for a line; neighbours differ by their
dashes, too. Seven colours and four kinds of dashes make 28 different lines. matplotlib is imported when a
picture is made: it would slow every other command down.
"""

import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedexp.files.atomic import atomic_path
from fedexp.report.read.methods import Method

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
INK, QUIET, RULE, PAPER = "#1c2126", "#5a646e", "#dfe3e8", "#ffffff"  # the HTML page has others of them in the dark
CROWD = 12  # up to so many methods have bands, and a legend below each drawing of the HTML page
_DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)))
_UNDATED = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
_LEGEND_ROW = 0.21  # inches
_LETTERS = 34  # of a name beside a row
_UPRIGHT, _SLANTED_LETTER = 4, 0.05  # letters of a name below a column; inches in height that one takes when slanted
_VERTICAL_LETTERS = 27  # of a line along the vertical axis
_END_LETTERS = 16  # of a name at the end of a curve
_SMALL = (5.4, 3.2)  # inches of a picture of one pair of axes, whose margins are known
_MARGINS = {"left": 0.155, "right": 0.97, "bottom": 0.165, "top": 0.89}
_STYLE: dict[Any, Any] = {
    **dict.fromkeys(("text.color", "axes.labelcolor"), INK),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), QUIET),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 9),
    **dict.fromkeys(("axes.grid", "axes.axisbelow"), True),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    "figure.facecolor": PAPER,
    "axes.facecolor": "none",
    "grid.color": RULE,
    "axes.titlesize": 11,
    "lines.linewidth": 1.8,
    "savefig.dpi": 150,
    "svg.fonttype": "none",
    "pdf.fonttype": 42,  # TrueType: some venues refuse the fonts of type 3
    **{f"figure.subplot.{side}": share for side, share in _MARGINS.items()},
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
}


@contextmanager
def style() -> Iterator[None]:
    """The settings under which a picture is made and saved; also a decorator."""
    import matplotlib

    with warnings.catch_warnings(), matplotlib.rc_context(_STYLE):
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # a name in letters that the pictures' font lacks
        yield


def canvas(
    title: str, horizontal: str = "", vertical: str = "", size: tuple[float, float] = _SMALL
) -> "tuple[Figure, Axes]":
    """A figure of a size in inches, and its empty axes with their names."""
    from matplotlib.figure import Figure

    # To work a layout out takes as long as to draw the picture.
    figure = Figure(figsize=size, layout=None if size == _SMALL else "constrained")
    axes = figure.subplots()
    axes.set(title=title, xlabel=horizontal, ylabel=textwrap.fill(vertical, _VERTICAL_LETTERS))
    return figure, axes


def row_canvas(title: str, horizontal: str, rows: int, margin: float) -> "tuple[Figure, Axes]":
    """A wide figure with so many rows, and so many inches of it for everything else."""
    return canvas(title, horizontal, size=(8.6, margin + 0.28 * rows))


def save(path: Path, figure: "Figure") -> None:
    """Writes a PNG, PDF or SVG, by the ending, whole or not at all; the same picture gives the same bytes."""
    import matplotlib

    kind = path.suffix[1:]
    with atomic_path(path) as partial, matplotlib.rc_context({"svg.hashsalt": path.stem}):
        figure.savefig(partial, format=kind, metadata=_UNDATED.get(kind))


def color(method: Method) -> str:
    """The colour of a method, the same in every picture."""
    return COLORS[method.position % len(COLORS)]


def gid(method: Method) -> str:
    """The id of a method's artists, by which the HTML page hides them."""
    return f"m{method.position}"


def dash(method: Method) -> int:
    """The number of a method's kind of dashes, from 0 (solid)."""
    return method.position % len(_DASHES)


def line_style(method: Method, crowd: bool = False) -> dict[str, Any]:
    """How a method's line is drawn, thin in a crowd."""
    dashes = _DASHES[dash(method)]
    thin = {"linewidth": 1.0, "alpha": 0.6} if crowd else {}
    return {"color": color(method), "linestyle": dashes, "gid": gid(method), **thin}


def add_legend(figure: "Figure", methods: Sequence[Method]) -> None:
    """Names the methods below the picture, which grows by the room for them."""
    from matplotlib.lines import Line2D

    figure.set_layout_engine("constrained")
    names = [label_with_seeds(method) for method in methods]
    columns = max(1, min(len(names), int(figure.get_figwidth() / (0.066 * max(map(len, names), default=1) + 0.55))))
    figure.set_figheight(figure.get_figheight() + _LEGEND_ROW * -(-len(names) // columns))
    handles = [Line2D([], [], **line_style(method)) for method in methods]
    figure.legend(handles, names, loc="outside lower center", ncols=columns)


def short_name(method: Method) -> str:
    """What a curve bears at its end: the label, or a number that the legend explains where it is too long."""
    return method.label if len(method.label) <= _END_LETTERS else f"#{method.position + 1}"


def label_with_seeds(method: Method) -> str:
    """What a legend calls a method: the label, and the number of seeds where there are several."""
    number = "" if short_name(method) == method.label else f"{short_name(method)} "
    seeds = f" ({len(method.runs)} seeds)" if len(method.runs) > 1 else ""
    return f"{number}{method.label}{seeds}"


def integer_ticks(axis: Any) -> None:
    """Ticks at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))


def shorten(name: str) -> str:
    """A name beside a row, cut where it is too long to leave room for a drawing."""
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"


def name_columns(axes: "Axes", names: Sequence[str], positions: Sequence[float] | None = None) -> None:
    """Names the columns, which stand at 0, 1, ... if not told.

    Where names would not fit beside each other they are slanted, and the figure grows by their height.
    """
    labels = [shorten(name) for name in names]
    longest = max((len(line) for name in labels for line in name.splitlines()), default=0)
    slanted = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if longest > _UPRIGHT else {}
    axes.set_xticks(range(len(names)) if positions is None else positions, labels=labels, **slanted)
    figure = axes.get_figure(root=True)
    if slanted and figure is not None:
        figure.set_figheight(figure.get_figheight() + _SLANTED_LETTER * longest)


def name_rows(axes: "Axes", names: Sequence[str]) -> None:
    """Names the rows 0, 1, ... from above."""
    axes.set_yticks(range(len(names)), labels=[shorten(name) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
