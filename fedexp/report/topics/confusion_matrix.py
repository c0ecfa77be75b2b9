"""What the final model of a method answers on each class of the test data, from confusion_matrix.csv."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedexp.core.errors import ConfigError
from fedexp.files import run_tables
from fedexp.files.atomic import display_path
from fedexp.report.draw import heatmap, style
from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.picture_data import of_table
from fedexp.report.draw.section import Picture, Section, section
from fedexp.report.read.methods import Method

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

NAME, FIRST = "confusion_matrix.csv", "true class"
_TITLE = "What the model answers on the test data"
_MOST = 6  # methods in a report
_NUMBERED = 20  # up to so many classes have their counts written out
_NAMED = 40  # up to so many classes have a name each


def build_section(methods: Sequence[Method]) -> Section | None:
    """The picture of the first run of each of the first methods."""
    having = [method for method in methods if (method.runs[0].folder / NAME).is_file()]
    pictures = [_picture(method) for method in having[:_MOST]]
    limit_note = f" The first {_MOST} of {len(having)} methods." if len(having) > _MOST else ""
    note = (
        "Of the first run of each method, after its last round. Numbers are test examples; the colour is the share of "
        f"the true class (of the row). The answers are the global model's, also where clients use others.{limit_note}"
    )
    return section("confusion", "Confusion matrices", note, pictures)


def figure(counts: np.ndarray, class_names: Sequence[str]) -> "Figure":
    """A heat map of `counts [K, K]`: true classes as rows, answers as columns."""
    classes = len(counts)
    side = max(3.4, min(9.0, 0.42 * classes))
    drawn, axes = style.canvas(_TITLE, "Answer of the model", "True class", (side + 2.2, side + 0.8))
    sizes = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, sizes, out=np.full(counts.shape, np.nan), where=sizes > 0)
    heatmap.draw_cells(drawn, axes, shares, "Share of the true class")
    if classes <= _NUMBERED:
        heatmap.draw_numbers(axes, counts, str)
    shown = range(0, classes, -(-classes // _NAMED))
    labels, size = [style.shorten(class_names[label]) for label in shown], 8 if classes <= 24 else 6
    axes.set_xticks(shown, labels=labels, fontsize=size, rotation=90 if max(map(len, labels)) > 3 else 0)
    axes.set_yticks(shown, labels=labels, fontsize=size)
    return drawn


def _picture(method: Method) -> Picture:
    run = method.runs[0]
    table = run_tables.read_frame(run.folder / NAME, (FIRST,))
    counts, names = _read_counts(table, str(display_path(run.folder / NAME))), [str(name) for name in table.columns[1:]]
    rows = [[name, *map(str, row)] for name, row in zip(names, counts, strict=True)]
    seed = f"{method.label}, seed {run.seed}" if run.seed is not None else method.label
    right = f"{np.trace(counts):,} of {counts.sum():,} answers are right"
    return Picture(
        name=f"method_{method.position + 1}_confusion",
        title=_TITLE,
        figure=figure(counts, names),
        data=of_table(Grid((FIRST, *names), rows), "classes", f"{right}."),
        caption=f"{seed}: {right}.",
        tab=method.label,
    )


def _read_counts(table: "pd.DataFrame", name: str) -> np.ndarray:
    """The counts `[K, K]`."""
    cells = table.iloc[:, 1:]
    is_whole = all(kind.kind == "i" for kind in cells.dtypes) and bool((cells >= 0).to_numpy().all())
    if not cells.size or len(cells) != cells.shape[1] or not is_whole:
        raise ConfigError(f"{name} must have whole numbers from 0 on, as many rows as columns; is it damaged?")
    return cells.to_numpy()
